//! The Autobahn suite before the real program (RFC 6455): what it says of each case is the same through the proxy as without,
//! and no case fails.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use end_to_end::clients::site::Site;
use end_to_end::clients::websocket::Echo;
use end_to_end::clients::{archive, python, run_for, script};

/// Each case's two verdicts: on its messages and on its end.
fn verdicts(python: &Path, suite: &Path, to: SocketAddr) -> BTreeMap<String, [String; 2]> {
    let words = [script("autobahn_client.py").into(), suite.as_os_str().to_owned(), format!("ws://{to}/socket").into()];
    let ran = run_for(300, &python.display().to_string(), words);
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

#[test]
fn autobahn_judges_each_case_through_the_proxy_as_without() {
    let (Some(python), Some(suite)) = (python(), archive("autobahntestsuite")) else {
        let lack = "a Python with autobahn and the archive of autobahntestsuite (cargo xtask setup)";
        return testkit::skip("autobahn_judges_each_case_through_the_proxy_as_without", lack);
    };
    let echo = Echo::start();
    let (route, cluster) = echo.config();
    let site = Site::start(&route, &cluster);
    let direct = verdicts(&python, &suite, echo.addr);
    let through = verdicts(&python, &suite, site.lazaret.proxy);
    assert!(direct.len() > 240, "only {} cases were played", direct.len());
    assert_eq!(direct, through);
    for (case, [messages, end]) in &through {
        let is_good = |verdict: &str| ["OK", "NON-STRICT", "INFORMATIONAL"].contains(&verdict);
        assert!(is_good(messages) && is_good(end), "{case}: {messages}, {end}");
    }
}
