//! `hash` of a cluster: what ConsistentHash tells requests apart by.

use model::balancing::{HashKey, LoadBalancing};

use crate::raw::Value;
use crate::raw::section::{Field, Reading, Section};
use crate::resolve::matching;

/// The policy with its key. A key beside another policy would do nothing and is refused.
pub fn applied(r: &mut Reading<'_>, s: &mut Section<'_>, policy: LoadBalancing) -> LoadBalancing {
    let Some(field) = s.take(r, "hash") else { return policy };
    match (key(r, &field), policy) {
        (Some(key), LoadBalancing::ConsistentHash(_)) => LoadBalancing::ConsistentHash(key),
        (None, policy) => policy,
        (Some(_), policy) => {
            field.refuse(r, "`hash` has no effect here", "expected `load_balancing: ConsistentHash` beside it");
            policy
        }
    }
}

fn key(r: &mut Reading<'_>, field: &Field<'_>) -> Option<HashKey> {
    let Value::Map(_) = field.node.value else {
        return match field.word(r, &[("client_address", 0), ("path", 1)])? {
            0 => Some(HashKey::ClientAddress),
            _ => Some(HashKey::Path),
        };
    };
    let mut s = field.section(r)?;
    let header = s.take(r, "header");
    let cookie = s.take(r, "cookie");
    let span = s.span;
    s.finish(r);
    match (header, cookie) {
        (Some(header), None) => name(r, &header).map(|name| HashKey::Header(name.to_ascii_lowercase())),
        (None, Some(cookie)) => name(r, &cookie).map(HashKey::Cookie),
        (None, None) | (Some(_), Some(_)) => {
            r.error(
                span,
                "`hash` goes by one thing",
                "expected client_address, path, {header: NAME} or {cookie: NAME}",
            );
            None
        }
    }
}

fn name(r: &mut Reading<'_>, field: &Field<'_>) -> Option<String> {
    let text = field.text(r)?;
    if matching::is_header_name(text) {
        return Some(text.to_owned());
    }
    field.refuse(r, format!("`{text}` is no name of a field or a cookie"), "expected letters, digits and -");
    None
}
