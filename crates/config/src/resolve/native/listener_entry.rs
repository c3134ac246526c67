//! Who may connect to a listener: `proxy_protocol`, `allow`, `deny`, `limit_connections`.

use model::entry::{AccessList, Entry, ProxyProtocol};

use super::{entry, networks};
use crate::raw::Value;
use crate::raw::section::{Field, Reading, Section};

/// Takes the keys of a listener.
pub fn resolve(r: &mut Reading<'_>, s: &mut Section<'_>) -> Entry {
    let proxy_protocol = s.take(r, "proxy_protocol").and_then(|field| proxy_protocol(r, &field)).unwrap_or_default();
    let access = access_list(r, s);
    let limit_connections = s.take(r, "limit_connections").and_then(|field| entry::connections(r, &field));
    Entry { proxy_protocol, access, limit_connections }
}

/// `allow` and `deny`.
fn access_list(r: &mut Reading<'_>, s: &mut Section<'_>) -> AccessList {
    let allow = s.take(r, "allow").map(|field| {
        let allow = networks(r, &field);
        if allow.is_empty() && !r.has_errors() {
            field.refuse(r, "`allow` is empty", "expected networks; without the key everybody may come");
        }
        allow
    });
    let deny = s.take(r, "deny").map(|field| networks(r, &field));
    AccessList { allow: allow.unwrap_or_default(), deny: deny.unwrap_or_default() }
}

/// `off`, `required`, or `{from: [NETWORK]}`.
fn proxy_protocol(r: &mut Reading<'_>, field: &Field<'_>) -> Option<ProxyProtocol> {
    match &field.node.value {
        Value::Bool(false) => return Some(ProxyProtocol::Off),
        Value::Text(text) if text == "off" => return Some(ProxyProtocol::Off),
        Value::Text(text) if text == "required" => return Some(ProxyProtocol::Required { from: Vec::new() }),
        Value::Map(_) => {}
        Value::Null | Value::Bool(true) | Value::Text(_) | Value::Number(_) | Value::List(_) => {
            let expected = "expected off, required, or {from: [10.0.0.0/8]} to believe these peers alone";
            field.refuse(r, "`proxy_protocol` does not say whether there is a PROXY header", expected);
            return None;
        }
    }
    let mut s = field.section(r)?;
    let from = s.take(r, "from").map(|field| networks(r, &field)).unwrap_or_default();
    if from.is_empty() && !r.has_errors() {
        let expected = "expected the networks of those who send PROXY headers; `required` believes everybody";
        field.refuse(r, "`proxy_protocol` has no `from`", expected);
    }
    s.finish(r);
    Some(ProxyProtocol::Required { from })
}
