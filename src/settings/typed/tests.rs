//! Tests of the settings as the rest of the program receives them.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use crate::settings::defs::DEFS;

#[test]
fn every_setting_is_read_with_its_type() {
    let loaded = Settings::defaults(Path::new("/bin/mcpx")).unwrap();
    let values = Values { resolved: &loaded.resolved, read: RefCell::default() };
    let settings = Settings::of(&values);
    let read = values.read.into_inner();
    let table: BTreeSet<_> = DEFS.iter().map(|def| def.key).collect();
    assert_eq!(read.len(), table.len(), "a setting is read twice, or not at all");
    assert_eq!(read.into_iter().collect::<BTreeSet<_>>(), table);
    // Defaults that depend on each other; config/defaults.toml says why beside each.
    assert!(settings.pool.queue_timeout > settings.upstream.handshake);
    assert!(settings.upstream.handshake > settings.process.spawn);
    assert!(settings.upstream.handshake > settings.remote.connect);
    assert!(settings.link.write_queue >= settings.pool.in_flight);
    assert!(settings.link.write_queue >= settings.host.max_in_flight);
    assert!(settings.daemon.control_bodies >= settings.daemon.control_body);
    assert!(settings.http.body_budget >= settings.http.max_body);
    assert!(settings.daemon.control_connections > settings.host.max_connections);
    let ladder = settings.process.drain + settings.process.term;
    assert!(settings.daemon.stop > settings.host.drain + ladder);
    assert!(settings.exec.timeout > settings.call.total);
    assert!(settings.tasks.ttl > settings.exec.timeout);
    assert!(settings.tasks.ttl > settings.call.total);
    assert!(settings.exec.timeout > settings.call.total);
    assert!(settings.tasks.ttl > settings.exec.timeout);
    assert!(settings.tasks.max_ttl > settings.tasks.ttl);
    assert!(settings.artifacts.max_size >= settings.link.max_frame);
    assert!(settings.artifacts.keep >= settings.tasks.max_ttl);
}
