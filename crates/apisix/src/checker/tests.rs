//! Documents as APISIX of several versions prints them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

fn read(text: &str) -> Checker {
    serde_json::from_str(text).unwrap()
}

fn states() -> Vec<String> {
    vec!["healthy".to_owned(), "mostly_healthy".to_owned()]
}

#[test]
fn the_current_form_is_read_whole_and_unknown_keys_are_ignored() {
    let checker = read(
        r#"{"name":"/apisix/upstreams/api","type":"http","later":[1],
            "nodes":[{"ip":"10.1.0.1","port":8080,"hostname":"a.test","status":"mostly_healthy","meta":{"x":1},
                      "counter":{"success":0,"http_failure":1,"tcp_failure":2,"timeout_failure":3,"other":4}}]}"#,
    );
    assert_eq!(checker.name, "/apisix/upstreams/api");
    assert_eq!(checker.kind.as_deref(), Some("http"));
    let node = &checker.nodes[0];
    assert_eq!((node.ip.as_str(), node.port, node.hostname.as_str()), ("10.1.0.1", 8080, "a.test"));
    assert_eq!(node.counter, Counter { success: 0, http_failure: 1, tcp_failure: 2, timeout_failure: 3 });
    assert!(node.counts_as(&states()));
    assert!(!node.counts_as(&["healthy".to_owned()]));
}

#[test]
fn nodes_may_be_an_empty_object_null_or_missing() {
    for nodes in [r#","nodes":{}"#, r#","nodes":null"#, r#","nodes":[]"#, ""] {
        let checker = read(&format!(r#"{{"name":"/apisix/upstreams/api","type":"http"{nodes}}}"#));
        assert!(checker.nodes.is_empty(), "{nodes}");
    }
}

#[test]
fn a_table_with_gaps_is_an_object_and_its_nodes_are_read() {
    let checker = read(r#"{"name":"x","nodes":{"1":{"ip":"10.0.0.1","port":80,"status":"healthy"},"3":null}}"#);
    assert_eq!(checker.nodes.len(), 1);
    assert!(checker.nodes[0].counts_as(&states()));
}

#[test]
fn a_missing_status_and_a_node_that_is_being_removed_never_count() {
    let checker = read(
        r#"{"name":"/upstreams/1","nodes":[{"ip":"10.0.0.1","port":80},
            {"ip":"10.0.0.2","port":80,"status":"healthy","purge_time":1690000000.123},
            {"ip":"10.0.0.3","port":80,"status":"splendid"},{"ip":"10.0.0.4","port":80,"status":7}]}"#,
    );
    assert_eq!(checker.nodes.len(), 4);
    assert!(checker.nodes.iter().all(|node| !node.counts_as(&states())));
    assert!(checker.nodes[1].is_purged);
    assert_eq!(checker.nodes[2].status.as_deref(), Some("splendid"));
    assert_eq!(checker.nodes[3].status, None);
}

#[test]
fn the_form_before_3_3_is_read_by_its_second_list() {
    let checker = read(
        r#"{"name":"upstream#/apisix/upstreams/api","src_type":"upstreams","src_id":"api",
            "nodes":[{"host":"10.1.0.1","port":8080,"weight":1,"priority":0},
                     {"host":"10.1.0.2","port":8080,"weight":1,"priority":0}],
            "healthy_nodes":[{"host":"10.1.0.2","port":8080,"weight":1,"priority":0}]}"#,
    );
    let counted: Vec<bool> = checker.nodes.iter().map(|node| node.counts_as(&states())).collect();
    assert_eq!(counted, [false, true]);
    let none = read(r#"{"name":"x","nodes":[{"host":"10.1.0.1","port":8080}],"healthy_nodes":{}}"#);
    assert!(!none.nodes[0].counts_as(&states()));
}

#[test]
fn ports_may_be_texts_and_addresses_bare() {
    let checker = read(r#"{"name":"x","nodes":[{"ip":"fd00::1","port":"8080","status":"healthy"}]}"#);
    assert_eq!((checker.nodes[0].ip.as_str(), checker.nodes[0].port), ("fd00::1", 8080));
}

#[test]
fn other_documents_are_refused() {
    for text in ["[]", "7", r#""x""#, "{}", r#"{"error_msg":"x"}"#, r#"{"name":"x","nodes":"many"}"#] {
        assert!(serde_json::from_str::<Checker>(text).is_err(), "{text}");
    }
}

#[test]
fn the_list_is_an_array_or_an_empty_object() {
    let list = |text| serde_json::from_str::<CheckerList>(text);
    assert!(list("{}").unwrap().0.is_empty());
    assert!(list("[]").unwrap().0.is_empty());
    assert_eq!(list(r#"[{"name":"a","nodes":{}},{"name":"b"}]"#).unwrap().0.len(), 2);
    assert!(list(r#"{"name":"a"}"#).is_err());
}

#[test]
fn what_we_write_is_the_current_form_and_reads_back() {
    let node = Node {
        ip: "[fd00::1]".to_owned(),
        port: 8080,
        hostname: "fd00::1".to_owned(),
        status: Some("healthy".to_owned()),
        counter: Counter::default(),
        is_purged: false,
    };
    let checker =
        Checker { name: "/apisix/upstreams/api".to_owned(), kind: Some("http".to_owned()), nodes: vec![node] };
    let text = serde_json::to_string(&checker).unwrap();
    assert_eq!(
        text,
        r#"{"name":"/apisix/upstreams/api","type":"http","nodes":[{"ip":"[fd00::1]","port":8080,"hostname":"fd00::1","status":"healthy","counter":{"success":0,"http_failure":0,"tcp_failure":0,"timeout_failure":0}}]}"#
    );
    assert_eq!(read(&text), checker);
}

#[test]
fn nothing_is_written_as_an_empty_object() {
    let checker = Checker { name: "/apisix/upstreams/api".to_owned(), kind: Some("http".to_owned()), nodes: vec![] };
    let text = serde_json::to_string(&checker).unwrap();
    assert_eq!(text, r#"{"name":"/apisix/upstreams/api","type":"http","nodes":{}}"#);
    assert_eq!(read(&text), checker);
    assert_eq!(serde_json::to_string(&CheckerList::default()).unwrap(), "{}");
    let list = serde_json::to_string(&CheckerList(vec![checker])).unwrap();
    assert!(list.starts_with('['), "{list}");
}
