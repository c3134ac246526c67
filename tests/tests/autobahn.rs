//! The Autobahn suite before the real program: its verdict on each case is the same through the proxy as without.
//!
//! `LAZARET_LONG=1` alone: the suite's `wstest` is Python 2.7 (`pip install autobahntestsuite==0.8.2`), which no
//! distribution brings any more. `frames_good_and_bad_are_answered_through_the_proxy_as_without` is its short form.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use end_to_end::clients::site::Site;
use end_to_end::clients::websocket::Echo;
use end_to_end::clients::{exists, run};
use end_to_end::control::is_long;
use serde_json::{Value, json};

/// Each case's two verdicts: on its messages and on its end.
fn verdicts(folder: &Path, name: &str, to: SocketAddr) -> BTreeMap<String, [Value; 2]> {
    let spec = json!({
        "outdir": folder.join(name),
        "servers": [{"agent": "server", "url": format!("ws://{to}/socket")}],
        // Limits and throughput are in 9; 12 and 13 want compression.
        "cases": ["1.*", "2.*", "3.*", "4.*", "5.*", "6.*", "7.*", "9.1.1", "9.1.2", "9.2.1", "9.2.2", "10.*"],
        "exclude-cases": [],
        "exclude-agent-cases": {},
    });
    let file = folder.join(format!("{name}.json"));
    std::fs::write(&file, spec.to_string()).unwrap();
    let ran = run("wstest", ["-m", "fuzzingclient", "-s", &file.display().to_string()]);
    let index = std::fs::read_to_string(folder.join(name).join("index.json")).unwrap_or_else(|_| panic!("{ran:?}"));
    let index: Value = serde_json::from_str(&index).unwrap();
    let cases = index["server"].as_object().unwrap();
    cases.iter().map(|(case, of)| (case.clone(), [of["behavior"].clone(), of["behaviorClose"].clone()])).collect()
}

#[test]
fn autobahn_judges_each_case_through_the_proxy_as_without() {
    if !is_long() {
        return;
    }
    if !exists("wstest") {
        return testkit::skip("autobahn_judges_each_case_through_the_proxy_as_without", "wstest (autobahntestsuite)");
    }
    let echo = Echo::start();
    let (route, cluster) = echo.config();
    let site = Site::start(&route, &cluster);
    let folder = tempfile::tempdir().unwrap();
    let direct = verdicts(folder.path(), "direct", echo.addr);
    let through = verdicts(folder.path(), "through", site.lazaret.proxy);
    assert!(direct.len() > 200, "only {} cases were played", direct.len());
    assert_eq!(direct, through);
}
