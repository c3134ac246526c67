//! The checker object of `GET /v1/healthcheck` and `GET /v1/healthcheck/{type}/{id}`: what is known of each node of one
//! upstream.
//!
//! Written in the form of APISIX 3.3 and later. Read in every form that APISIX has had:
//!
//! | versions | form |
//! |---|---|
//! | 3.3 and later | `nodes: [{ip, port, hostname, status, counter}]`; a status may be missing; `purge_time` marks a node that is being removed |
//! | 3.3 and later, nothing to show | `nodes: {}` (an empty Lua table), `null`, or no `nodes` at all; the list as a whole may be `{}` |
//! | 2.3 to 3.2 | `nodes` and `healthy_nodes`, both `[{host, port, weight, priority}]`: in the second list means healthy |
//!
//! A document without a `name` is none of these and is refused: any other service's JSON would otherwise read as "no
//! node is healthy".

use std::collections::BTreeSet;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

/// One upstream's checker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value")]
pub struct Checker {
    /// Key of the checked object: `/apisix/upstreams/<id>`, without `/apisix` where APISIX runs from a file, with
    /// `upstream#` in front before 3.3.
    pub name: String,
    /// `http`, `https` or `tcp`; missing before 3.3 and in odd configurations.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The nodes, in the order of the document. None at all are written as APISIX does: as `{}`.
    #[serde(serialize_with = "lua_table")]
    pub nodes: Vec<Node>,
}

/// One node of a checker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Address; IPv6 in brackets (readers meet it bare, too).
    pub ip: String,
    /// Port; 0 when the document gave none.
    pub port: u16,
    /// The checked host's name.
    pub hostname: String,
    /// `healthy`, `mostly_healthy`, `mostly_unhealthy`, `unhealthy`, or a word we do not know; `None` when missing
    /// (APISIX lost the state).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Consecutive counts.
    pub counter: Counter,
    /// The node is being removed: it must not count. Never written by us.
    #[serde(skip)]
    pub is_purged: bool,
}

impl Node {
    /// Whether it counts as having one of `states`. A node that is being removed, or has no state, never does.
    pub fn counts_as(&self, states: &[String]) -> bool {
        !self.is_purged && self.status.as_ref().is_some_and(|status| states.contains(status))
    }
}

/// Consecutive counts of a node; each stops at 255 in APISIX (8 bits).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counter {
    /// Successes.
    pub success: u64,
    /// Failures by status.
    pub http_failure: u64,
    /// Failures to connect.
    pub tcp_failure: u64,
    /// Timeouts.
    pub timeout_failure: u64,
}

/// Why a document is no checker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It is no JSON object.
    NotAnObject,
    /// There is no `name` in it.
    NoName,
    /// `nodes` (or the list of checkers) is neither a list nor an object nor null.
    Nodes,
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NotAnObject => "the answer is no JSON object",
            Self::NoName => "there is no name in the answer",
            Self::Nodes => "nodes is no list",
        })
    }
}

impl std::error::Error for Unreadable {}

impl TryFrom<Value> for Checker {
    type Error = Unreadable;

    fn try_from(document: Value) -> Result<Self, Unreadable> {
        let Value::Object(mut object) = document else { return Err(Unreadable::NotAnObject) };
        let name = text(&object, "name").ok_or(Unreadable::NoName)?;
        let kind = text(&object, "type");
        let nodes = list(object.remove("nodes").unwrap_or(Value::Null))?;
        let healthy = match object.remove("healthy_nodes") {
            None => None,
            Some(healthy) => Some(list(healthy)?.iter().map(place).collect::<BTreeSet<_>>()),
        };
        let nodes = nodes.iter().map(|node| read_node(node, healthy.as_ref())).collect();
        Ok(Self { name, kind, nodes })
    }
}

/// Every checker of `GET /v1/healthcheck`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value")]
pub struct CheckerList(#[serde(serialize_with = "lua_table")] pub Vec<Checker>);

impl TryFrom<Value> for CheckerList {
    type Error = Unreadable;

    fn try_from(document: Value) -> Result<Self, Unreadable> {
        let entries = match document {
            Value::Array(entries) => entries,
            Value::Object(object) if object.is_empty() => Vec::new(),
            Value::Null => Vec::new(),
            Value::Object(_) | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Err(Unreadable::Nodes),
        };
        entries.into_iter().map(Checker::try_from).collect::<Result<_, _>>().map(Self)
    }
}

/// A list as Lua's JSON writer has it: an empty table is an object.
fn lua_table<T: Serialize, S: Serializer>(items: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    if items.is_empty() { serializer.serialize_map(Some(0))?.end() } else { items.serialize(serializer) }
}

/// The objects of a list. Lua writes an empty table as `{}` and one with gaps as an object with numbers for keys.
fn list(value: Value) -> Result<Vec<Map<String, Value>>, Unreadable> {
    let values: Vec<Value> = match value {
        Value::Null => Vec::new(),
        Value::Array(values) => values,
        Value::Object(object) => object.into_iter().map(|(_, value)| value).collect(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => return Err(Unreadable::Nodes),
    };
    Ok(values
        .into_iter()
        .filter_map(|value| match value {
            Value::Object(object) => Some(object),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
        })
        .collect())
}

fn read_node(node: &Map<String, Value>, healthy: Option<&BTreeSet<(String, u16)>>) -> Node {
    let (ip, port) = place(node);
    let status = match healthy {
        None => text(node, "status"),
        Some(healthy) if healthy.contains(&(ip.clone(), port)) => Some("healthy".to_owned()),
        Some(_) => Some("unhealthy".to_owned()),
    };
    let counter = node.get("counter").cloned().and_then(|counter| serde_json::from_value(counter).ok());
    Node {
        hostname: text(node, "hostname").unwrap_or_else(|| ip.clone()),
        ip,
        port,
        status,
        counter: counter.unwrap_or_default(),
        is_purged: node.get("purge_time").is_some_and(|time| !time.is_null()),
    }
}

fn place(node: &Map<String, Value>) -> (String, u16) {
    let ip = text(node, "ip").or_else(|| text(node, "host")).unwrap_or_default();
    let port = node.get("port").and_then(|port| port.as_u64().or_else(|| port.as_str()?.parse().ok()));
    (ip, port.and_then(|port| u16::try_from(port).ok()).unwrap_or(0))
}

fn text(object: &Map<String, Value>, key: &str) -> Option<String> {
    object.get(key).and_then(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests;
