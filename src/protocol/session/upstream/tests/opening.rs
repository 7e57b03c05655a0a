//! U-02 to U-17, U-30, F24 to F26 over stdio.

use super::*;
use crate::protocol::era_record::EraSource;
use Preference::{ForceDiscover, ForceInitialize, PreferDiscover, PreferInitialize};

/// U-08: the probe carries the whole envelope.
#[test]
fn u08_the_probe_is_a_full_modern_request() {
    let rig = Rig::new(config(PreferDiscover));
    let frame = rig.last();
    assert_eq!(frame["method"], "server/discover");
    assert!(frame["id"].as_u64().unwrap() > 0);
    let meta = &frame["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "mcpx");
    assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object());
}

/// U-04, U-08, U-53: a discover result settles, without handshake or `initialized`.
#[test]
fn u04_a_modern_server_gets_no_handshake() {
    let mut rig = Rig::new(config(PreferDiscover));
    rig.answers(rig.last_id("server/discover"), DISCOVERED);
    rig.at(60);
    let settled = rig.settled_as();
    assert_eq!(settled.revision, Revision::V2026_07_28);
    assert_eq!(settled.source, EraSource::Probe);
    assert_eq!(settled.info.unwrap().member_str("name").unwrap(), "m");
    assert_eq!(settled.instructions.unwrap(), "hi");
    assert_eq!(settled.record.unwrap(), EraRecord::learned(Revision::NEWEST, EraSource::Probe));
    assert_eq!(rig.new_frames(), ["server/discover"]);
}

/// F25 a: silent on the probe: `initialize` after the patience, then a legacy session.
#[test]
fn f25a_silent_on_the_probe() {
    let mut rig = Rig::new(config(PreferDiscover));
    rig.at(1);
    assert_eq!(rig.new_frames(), ["server/discover"]);
    rig.at(2);
    assert_eq!(rig.new_frames(), ["initialize"]);
    assert_eq!(rig.last()["params"]["protocolVersion"], "2025-11-25");
    rig.answers(rig.last_id("initialize"), INITIALIZED);
    assert_eq!(rig.new_frames(), ["notifications/initialized"]);
    let settled = rig.settled_as();
    assert_eq!(settled.revision, Revision::V2025_06_18);
    assert_eq!(settled.info.unwrap().member_str("name").unwrap(), "l");
    assert!(!settled.stale);
}

/// F25 b, c, d, U-09: whatever error is not a modern one means `initialize`, at once.
#[test]
fn f25bcd_any_other_error_is_legacy() {
    for code in [-32602, -32601, -32000, -32600, -32004, 0] {
        let mut rig = Rig::new(config(PreferDiscover));
        rig.refuses(rig.last_id("server/discover"), code, "null");
        assert_eq!(rig.new_frames(), ["server/discover", "initialize"], "{code}");
        rig.answers(rig.last_id("initialize"), INITIALIZED);
        assert_eq!(rig.settled_as().revision, Revision::V2025_06_18);
    }
}

/// F24: `{}` to the probe is no discover result.
#[test]
fn f24_an_empty_discover_result_is_legacy() {
    let mut rig = Rig::new(config(PreferDiscover));
    rig.answers(rig.last_id("server/discover"), "{}");
    assert_eq!(rig.new_frames(), ["server/discover", "initialize"]);
}

/// F24: an error without an id can only be about the probe.
#[test]
fn f24_an_error_without_id_answers_the_probe() {
    let mut rig = Rig::new(config(PreferDiscover));
    rig.says(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"not initialized"}}"#);
    assert_eq!(rig.new_frames(), ["server/discover", "initialize"]);
}

/// F25 f: ends on the probe: started again, `initialize` first, and remembered.
#[test]
fn f25f_a_server_that_ends_on_the_probe() {
    let mut rig = Rig::new(config(PreferDiscover));
    let call = rig.call();
    rig.closes("exited with status 1", 1);
    assert_eq!(rig.failed_as(), OpenError::RestartLegacy);
    assert!(matches!(rig.outcome(call), Answer::Lost { written: false, .. }));

    let mut again = config(PreferDiscover);
    again.remembered = Some(EraRecord::ended_on_probe());
    let mut rig = Rig::new(again);
    assert_eq!(rig.new_frames(), ["initialize"]);
    rig.answers(rig.last_id("initialize"), INITIALIZED);
    let settled = rig.settled_as();
    assert_eq!((settled.source, settled.stale), (EraSource::Probe, false));
    assert_eq!(settled.record.unwrap().known_era(), Some(crate::protocol::revision::Era::Legacy));
}

/// F25 f, F28: ended when it was not the probe's doing: no second start from here.
#[test]
fn f25f_an_end_that_is_not_the_probes() {
    let mut cached = config(PreferDiscover);
    cached.remembered = Some(remembered("legacy", "2025-06-18"));
    for config in [cached, config(ForceDiscover), config(ForceInitialize), config(PreferInitialize)]
    {
        let mut rig = Rig::new(config);
        rig.closes("exited with status 1", 1);
        assert_eq!(rig.failed_as(), OpenError::Closed("exited with status 1".into()));
    }
}

/// F25 g, U-08: the probe answered late, after `initialize` went out.
#[test]
fn f25g_late_answers_to_the_probe() {
    let mut rig = Rig::new(config(PreferDiscover));
    rig.at(2);
    let (discover, initialize) = (rig.last_id("server/discover"), rig.last_id("initialize"));
    rig.refuses(discover, -32601, "null");
    rig.answers(initialize, INITIALIZED);
    assert_eq!(rig.settled_as().revision, Revision::V2025_06_18);

    // Late but first, as a slow modern server answers: modern, and the refusal behind it is ignored.
    let mut rig = Rig::new(config(PreferDiscover));
    rig.at(9);
    let (discover, initialize) = (rig.last_id("server/discover"), rig.last_id("initialize"));
    rig.answers(discover, DISCOVERED);
    rig.refuses(initialize, -32601, "null");
    assert_eq!(rig.settled_as().revision, Revision::V2026_07_28);
    assert_eq!(rig.new_frames(), ["server/discover", "initialize"]);
    assert!(rig.notices.is_empty(), "{:?}", rig.notices);

    // Late, and silent on `initialize`: modern after the patience.
    let mut rig = Rig::new(config(PreferDiscover));
    rig.at(9);
    rig.answers(rig.last_id("server/discover"), DISCOVERED);
    assert!(rig.events.is_empty());
    rig.at(11);
    assert_eq!(rig.settled_as().revision, Revision::V2026_07_28);

    // After the handshake has succeeded it changes nothing.
    let mut rig = Rig::new(config(PreferDiscover));
    rig.at(2);
    rig.answers(rig.last_id("initialize"), INITIALIZED);
    rig.answers(rig.last_id("server/discover"), DISCOVERED);
    assert_eq!(rig.events.len(), 1);
    assert_eq!(rig.settled_as().revision, Revision::V2025_06_18);
}

/// U-08: a server of both eras that starts slowly answers both, and is in a legacy session then. That is
/// not remembered, and what was is not called wrong.
#[test]
fn u08_a_slow_server_of_both_eras_is_in_a_legacy_session() {
    for record in [None, Some(remembered("modern", "2026-07-28"))] {
        let mut rig = Rig::new(UpstreamConfig { remembered: record, ..config(PreferDiscover) });
        rig.at(3);
        let (discover, initialize) = (rig.last_id("server/discover"), rig.last_id("initialize"));
        rig.answers(discover, DISCOVERED);
        assert!(rig.events.is_empty(), "{:?}", rig.events);
        rig.answers(initialize, INITIALIZED);
        assert_eq!(
            rig.new_frames(),
            ["server/discover", "initialize", "notifications/initialized"]
        );
        let settled = rig.settled_as();
        assert_eq!(settled.revision, Revision::V2025_06_18);
        assert_eq!((settled.record, settled.stale), (None, false));
        assert!(rig.notices.is_empty(), "{:?}", rig.notices);
        // The patience is over for good.
        rig.at(20);
        assert_eq!(rig.events.len(), 1);
    }
}

/// U-08, F26: beside a modern answer, one to `initialize` that begins no session is none.
#[test]
fn u08_no_session_beside_a_modern_answer() {
    for answer in
        [r#"{"protocolVersion":"2026-07-28"}"#, r#"{"protocolVersion":"1999-01-01"}"#, "{}"]
    {
        let mut rig = Rig::new(config(PreferDiscover));
        rig.at(3);
        let (discover, initialize) = (rig.last_id("server/discover"), rig.last_id("initialize"));
        rig.answers(discover, DISCOVERED);
        rig.answers(initialize, answer);
        assert_eq!(rig.settled_as().revision, Revision::V2026_07_28, "{answer}");
        assert_eq!(rig.new_frames(), ["server/discover", "initialize"], "{answer}");
    }
    // Its end beside one is not the probe's doing.
    let mut rig = Rig::new(config(PreferDiscover));
    rig.at(3);
    rig.answers(rig.last_id("server/discover"), DISCOVERED);
    rig.closes("exited with status 1", 4);
    assert_eq!(rig.failed_as(), OpenError::Closed("exited with status 1".into()));
}

/// U-08, U-10: `initialize` refused while the probe is still open: the probe decides.
#[test]
fn u10_initialize_refused_beside_an_open_probe() {
    let mut rig = Rig::new(config(PreferDiscover));
    rig.at(2);
    rig.refuses(rig.last_id("initialize"), -32600, "null");
    rig.at(10);
    rig.answers(rig.last_id("server/discover"), DISCOVERED);
    assert_eq!(rig.settled_as().revision, Revision::V2026_07_28);

    let mut rig = Rig::new(config(PreferDiscover));
    rig.at(2);
    rig.refuses(rig.last_id("initialize"), -32600, "null");
    rig.refuses(rig.last_id("server/discover"), -32601, "null");
    assert_eq!(rig.failed_as(), OpenError::Refused { code: -32600, message: "no".into() });
    assert_eq!(rig.closes.len(), 1);
}

/// U-10: `initialize` first, refused by a modern-only server: falls forward.
#[test]
fn u10_falls_forward_to_discover() {
    let mut rig = Rig::new(config(PreferInitialize));
    assert_eq!(rig.new_frames(), ["initialize"]);
    rig.refuses(rig.last_id("initialize"), -32022, r#"{"supported":["2026-07-28"]}"#);
    assert_eq!(rig.new_frames(), ["server/discover"]);
    rig.answers(rig.last_id("server/discover"), DISCOVERED);
    assert_eq!(rig.settled_as().revision, Revision::V2026_07_28);
    assert_eq!(rig.new_frames(), [""; 0]);
}

/// F24: -32020 and -32021 are a modern server's: no handshake.
#[test]
fn f24_modern_refusals_stay_modern() {
    for code in [-32020, -32021] {
        let mut rig = Rig::new(config(PreferDiscover));
        rig.refuses(rig.last_id("server/discover"), code, "null");
        assert_eq!(rig.failed_as(), OpenError::Refused { code, message: "no".into() });
        assert_eq!(rig.new_frames(), ["server/discover"]);
    }
}

/// U-14: asked again in a listed version, also the very one it refused, a bounded number of times.
#[test]
fn u14_version_retries_are_bounded() {
    let listed = r#"{"supported":["2026-07-28","2099-01-01"],"requested":"2026-07-28"}"#;
    let mut rig = Rig::new(config(PreferDiscover));
    rig.refuses(rig.last_id("server/discover"), -32022, listed);
    assert_eq!(rig.new_frames(), ["server/discover", "server/discover"]);
    rig.at(10);
    assert_eq!(rig.new_frames(), [""; 0]);
    let mut other = Rig::new(config(PreferDiscover));
    other.refuses(other.last_id("server/discover"), -32022, listed);
    other.answers(other.last_id("server/discover"), DISCOVERED);
    assert_eq!(other.settled_as().revision, Revision::V2026_07_28);

    rig.refuses(rig.last_id("server/discover"), -32022, listed);
    assert!(matches!(rig.failed_as(), OpenError::Refused { code: -32022, .. }));
    assert_eq!(rig.new_frames(), [""; 0]);
}

/// U-13, U-14: a modern answer that lists only legacy versions is followed by `initialize` with the
/// newest of them; one that lists nothing shared fails and names both.
#[test]
fn u13_only_legacy_versions_listed() {
    let mut rig = Rig::new(config(PreferDiscover));
    rig.refuses(
        rig.last_id("server/discover"),
        -32022,
        r#"{"supported":["2024-11-05","2025-03-26"]}"#,
    );
    assert_eq!(rig.last()["params"]["protocolVersion"], "2025-03-26");
    let mut rig = Rig::new(config(PreferDiscover));
    rig.answers(rig.last_id("server/discover"), r#"{"supportedVersions":["2099-01-01"]}"#);
    let text = rig.failed_as().to_string();
    assert!(text.contains("2099-01-01") && text.contains("2026-07-28"), "{text}");
}

/// U-14 with patience: a late known modern error ends the handshake that patience had sent.
#[test]
fn u14_late_modern_error_while_initialize_is_open() {
    let mut rig = Rig::new(config(PreferDiscover));
    rig.at(2);
    let initialize = rig.last_id("initialize");
    rig.refuses(rig.last_id("server/discover"), -32022, r#"{"supported":["2026-07-28"]}"#);
    rig.answers(initialize, INITIALIZED);
    rig.answers(rig.last_id("server/discover"), DISCOVERED);
    assert_eq!(rig.settled_as().revision, Revision::V2026_07_28);
    assert!(!rig.new_frames().contains(&"notifications/initialized".to_owned()));
}

/// F26, U-03: what an `initialize` result may name.
#[test]
fn f26_counter_offers() {
    for known in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut rig = Rig::new(config(PreferInitialize));
        rig.answers(rig.last_id("initialize"), &format!(r#"{{"protocolVersion":"{known}"}}"#));
        assert_eq!(rig.settled_as().revision.as_str(), known);
        assert_eq!(rig.new_frames(), ["initialize", "notifications/initialized"]);
    }
    for unknown in ["1999-01-01", "2099-01-01", ""] {
        let mut rig = Rig::new(config(PreferInitialize));
        rig.answers(rig.last_id("initialize"), &format!(r#"{{"protocolVersion":"{unknown}"}}"#));
        let text = rig.failed_as().to_string();
        assert!(text.contains(&format!("{unknown:?}")) && text.contains("2025-11-25"), "{text}");
        assert_eq!(rig.new_frames(), ["initialize"]);
        assert_eq!(rig.closes.len(), 1);
    }
    for unusable in ["{}", r#"{"protocolVersion":null}"#, "[]", "null", "7"] {
        let mut rig = Rig::new(config(PreferInitialize));
        rig.answers(rig.last_id("initialize"), unusable);
        assert!(matches!(rig.failed_as(), OpenError::Unusable(_)), "{unusable}");
    }
}

/// F26: a modern revision in an `initialize` result: asked once whether it is modern.
#[test]
fn f26_a_modern_revision_from_initialize() {
    let contradiction = r#"{"protocolVersion":"2026-07-28","capabilities":{}}"#;
    let mut rig = Rig::new(config(PreferInitialize));
    rig.answers(rig.last_id("initialize"), contradiction);
    assert_eq!(rig.new_frames(), ["initialize", "server/discover"]);
    rig.answers(rig.last_id("server/discover"), DISCOVERED);
    assert_eq!(rig.settled_as().revision, Revision::V2026_07_28);

    let mut rig = Rig::new(config(PreferDiscover));
    rig.refuses(rig.last_id("server/discover"), -32601, "null");
    rig.answers(rig.last_id("initialize"), contradiction);
    assert_eq!(rig.new_frames(), ["server/discover", "initialize", "server/discover"]);
    rig.refuses(rig.last_id("server/discover"), -32601, "null");
    assert_eq!(rig.failed_as(), OpenError::Version { answered: "2026-07-28".into() });

    let mut rig = Rig::new(config(ForceInitialize));
    rig.answers(rig.last_id("initialize"), contradiction);
    assert_eq!(rig.failed_as(), OpenError::Version { answered: "2026-07-28".into() });
}

/// A legacy server that refuses the offer but lists what it speaks gets one more offer.
#[test]
fn u02_a_refused_offer_is_followed_by_a_listed_one() {
    let mut rig = Rig::new(config(ForceInitialize));
    let listed = r#"{"supported":["2024-11-05"],"requested":"2025-11-25"}"#;
    rig.refuses(rig.last_id("initialize"), -32602, listed);
    assert_eq!(rig.last()["params"]["protocolVersion"], "2024-11-05");
    rig.refuses(rig.last_id("initialize"), -32602, r#"{"supported":["2025-03-26"]}"#);
    assert!(matches!(rig.failed_as(), OpenError::Refused { code: -32602, .. }));
}

/// U-02: a pin is the only revision offered and accepted.
#[test]
fn u02_version_pin() {
    let pinned = |pin| UpstreamConfig { pin: Some(pin), ..config(PreferDiscover) };
    let mut rig = Rig::new(pinned(Revision::V2025_03_26));
    assert_eq!(rig.last()["params"]["protocolVersion"], "2025-03-26");
    rig.answers(rig.last_id("initialize"), INITIALIZED);
    let text = rig.failed_as().to_string();
    assert!(text.contains("2025-03-26") && text.contains("2025-06-18"), "{text}");

    let mut rig = Rig::new(pinned(Revision::V2025_06_18));
    rig.answers(rig.last_id("initialize"), INITIALIZED);
    let settled = rig.settled_as();
    assert_eq!((settled.source, settled.record), (EraSource::Forced, None));

    let mut rig = Rig::new(pinned(Revision::V2026_07_28));
    rig.at(20);
    assert_eq!(rig.new_frames(), ["server/discover"]);
}

/// U-17: force values try one way, and neither read nor write the cache.
#[test]
fn u17_force_values() {
    for (force, wrong, frames) in [
        (ForceDiscover, remembered("legacy", "2025-06-18"), ["server/discover"]),
        (ForceInitialize, remembered("modern", "2026-07-28"), ["initialize"]),
    ] {
        let forced = || UpstreamConfig { remembered: Some(wrong.clone()), ..config(force) };
        let mut rig = Rig::new(forced());
        rig.at(20);
        assert_eq!(rig.new_frames(), frames);
        let id = rig.last()["id"].as_u64().unwrap();
        rig.refuses(id, -32601, "null");
        assert!(matches!(rig.failed_as(), OpenError::Refused { code: -32601, .. }));
        let mut rig = Rig::new(forced());
        let id = rig.last()["id"].as_u64().unwrap();
        rig.answers(id, if force == ForceDiscover { DISCOVERED } else { INITIALIZED });
        let settled = rig.settled_as();
        assert_eq!((settled.source, settled.stale), (EraSource::Forced, false));
        assert_eq!(settled.record, None);
    }
}

/// U-17: a cached legacy server gets `initialize` and no discover at all.
#[test]
fn u17_cached_legacy_goes_straight_to_initialize() {
    let record = remembered("legacy", "2025-06-18");
    let cached = UpstreamConfig { remembered: Some(record.clone()), ..config(PreferDiscover) };
    let mut rig = Rig::new(cached);
    rig.answers(rig.last_id("initialize"), INITIALIZED);
    assert_eq!(rig.new_frames(), ["initialize", "notifications/initialized"]);
    let settled = rig.settled_as();
    assert_eq!(settled.source, EraSource::Cache);
    assert_eq!(settled.record, Some(record));
}

/// U-17: a cached modern server is probed, whatever the preference would do first.
#[test]
fn u17_cached_modern_is_probed() {
    let record = remembered("modern", "2026-07-28");
    let cached = UpstreamConfig { remembered: Some(record.clone()), ..config(PreferInitialize) };
    let mut rig = Rig::new(cached);
    rig.answers(rig.last_id("server/discover"), DISCOVERED);
    assert_eq!(rig.new_frames(), ["server/discover"]);
    assert_eq!(rig.settled_as().record, Some(record));
}

/// U-17: a wrong record is corrected and reported, in both directions.
#[test]
fn u17_stale_records_are_corrected() {
    let legacy = UpstreamConfig {
        remembered: Some(remembered("legacy", "2025-06-18")),
        ..config(PreferDiscover)
    };
    let mut rig = Rig::new(legacy);
    rig.refuses(rig.last_id("initialize"), -32601, "null");
    rig.answers(rig.last_id("server/discover"), DISCOVERED);
    let settled = rig.settled_as();
    assert!(settled.stale && settled.source == EraSource::Probe);
    assert!(settled.record.unwrap().describes(Revision::NEWEST));
    assert_eq!(rig.notices.first().unwrap().kind, "server.era.stale");

    let modern = UpstreamConfig {
        remembered: Some(remembered("modern", "2026-07-28")),
        ..config(PreferDiscover)
    };
    let mut rig = Rig::new(modern);
    rig.refuses(rig.last_id("server/discover"), -32601, "null");
    rig.answers(rig.last_id("initialize"), INITIALIZED);
    let settled = rig.settled_as();
    assert!(settled.stale);
    assert!(settled.record.unwrap().describes(Revision::V2025_06_18));
}

/// U-30: an opening that takes too long ends by its limit; `initialize` is never cancelled.
#[test]
fn u30_initialize_is_never_cancelled() {
    let mut rig = Rig::new(config(PreferDiscover));
    let call = rig.call();
    rig.at(31);
    assert_eq!(rig.new_frames(), ["server/discover", "initialize"]);
    let text = rig.failed_as().to_string();
    assert!(text.contains("30s") && text.contains("upstream.handshake_timeout"), "{text}");
    assert!(matches!(rig.outcome(call), Answer::Lost { written: false, .. }));
    assert_eq!(rig.closes.len(), 1);
    // Later calls are told at once.
    let late = rig.call();
    assert!(matches!(rig.outcome(late), Answer::Lost { written: false, .. }));
}
