//! Resources, templates and prompts in the catalog: of two servers with one URI, and across daemons.

use std::sync::Arc;
use std::time::Duration;

use mcpx::actors::catalog::{Listing, Missing};
use mcpx::actors::instance::connect::Children;
use mcpx::protocol::session::upstream::ListKind;
use mcpx::settings::ExposeMode;
use serde_json::json;

use crate::eventually;
use crate::stage::{Stage, nobody};

const SOON: Duration = Duration::from_secs(5);
const README: &str = "file:///README.md";

/// F46: two servers serve one URI: in the order of neither configuration nor listing is one picked.
#[tokio::test(flavor = "multi_thread")]
async fn f46_two_servers_with_one_uri() {
    let mut stage = Stage::new(|settings| settings.expose.mode = ExposeMode::Passthrough).await;
    let (one, two) = (stage.fake("one", "--offers"), stage.fake("two", "--offers"));
    stage.serve(vec![stage.def(&two), stage.def(&one)]).await;
    stage.upstreams.list_now(&nobody(), "two", ListKind::Resources).await.unwrap();
    stage.upstreams.list_now(&nobody(), "one", ListKind::Resources).await.unwrap();
    let view = stage.catalog.offers(&stage.settings.expose);
    let Err(Missing::Ambiguous { those, .. }) = view.resolve(README) else { panic!("picked") };
    assert_eq!(those, ["mcpx://one/file:///README.md", "mcpx://two/file:///README.md"]);
    for (address, server) in those.iter().zip(["one", "two"]) {
        assert_eq!(view.resolve(address).unwrap().server.def.key, server);
        assert_eq!(view.address_of(server, README), *address);
    }
    stage.end().await;
}

/// F38: a changed list of resources is there before anybody is woken, and nobody is woken for nothing.
#[tokio::test(flavor = "multi_thread")]
async fn f38_resources_that_change() {
    let mut stage = Stage::new(|_| {}).await;
    let fake = stage.fake("list", "--offers --tools none");
    stage.serve(vec![stage.def(&fake)]).await;
    for kind in ListKind::ALL {
        stage.upstreams.list_now(&nobody(), "list", kind).await.unwrap();
        assert_eq!(stage.catalog.listing("list", kind), Some(Listing::Whole), "{kind:?}");
    }
    let has =
        |uri: &str| stage.catalog.snapshot().by_key("list").unwrap().resources.get(uri).is_some();
    assert!(has(README) && !has("new:1"));
    stage.call("list", "set_offers", json!({ "add": ["new:1"], "notify": 20 })).await.unwrap();
    eventually!(SOON, has("new:1"));
    let mut watch = stage.catalog.watch();
    watch.mark_unchanged();
    let readings = || fake.transcript().with_method("resources/list").len();
    let before = readings();
    stage.call("list", "set_offers", json!({ "notify": 20 })).await.unwrap();
    eventually!(SOON, readings() > before);
    // Behind the readings that the notices brought about: they are through when this is.
    stage.upstreams.list_again(&nobody(), "list", ListKind::Resources).await.unwrap();
    assert!(readings() < 30, "{} readings", readings());
    assert!(!watch.has_changed().unwrap(), "told of nothing");
    stage.end().await;
}

/// What was listed is kept: the next daemon shows it, and finds resources, without starting anything.
#[tokio::test(flavor = "multi_thread")]
async fn offers_outlive_the_daemon() {
    let mut stage = Stage::new(|_| {}).await;
    let fake = stage.fake("kept", "--offers --no-templates");
    let def = stage.def(&fake);
    stage.serve(vec![def.clone()]).await;
    for kind in ListKind::ALL {
        stage.upstreams.list_now(&nobody(), "kept", kind).await.unwrap();
    }
    stage.catalog.flush(SOON).await;
    let folder = stage.end_keeping().await;
    let mut stage = Stage::within(folder, Arc::new(Children::default()), |_| {}).await;
    stage.serve(vec![def]).await;
    let snapshot = stage.catalog.snapshot();
    let server = snapshot.by_key("kept").unwrap();
    assert!(server.resources.get(README).is_some() && server.prompts.get("greet").is_some());
    // A server that knows nothing of templates has none.
    assert_eq!(server.templates.listing, Listing::Whole);
    assert!(server.declares("completions") && server.lacks("tasks"));
    assert_eq!(stage.processes(), 0);
    stage.end().await;
}
