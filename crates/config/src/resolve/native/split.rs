//! `clusters` of a route: traffic that is split by weight, with `sticky` and `force` beside it.

use model::route::{RouteAction, Side, Split, Sticky};

use crate::raw::Value;
use crate::raw::section::{Field, Reading, Section};
use crate::resolve::matching::{self, Clusters};

/// The keys that stand beside `clusters`.
pub struct Options<'n> {
    sticky: Option<Field<'n>>,
    force: Option<Field<'n>>,
}

impl<'n> Options<'n> {
    /// Takes them.
    pub fn take(r: &mut Reading<'_>, s: &mut Section<'n>) -> Self {
        Self { sticky: s.take(r, "sticky"), force: s.take(r, "force") }
    }

    /// Notes that they have no meaning where there is one action without sides.
    pub fn refuse(&self, r: &mut Reading<'_>) {
        for field in [&self.sticky, &self.force].into_iter().flatten() {
            r.error(field.key_span, format!("`{}` without `clusters`", field.name), "expected several `clusters`");
        }
    }
}

/// Resolves the action.
pub fn resolve(
    r: &mut Reading<'_>,
    field: &Field<'_>,
    options: Options<'_>,
    clusters: &Clusters,
) -> Option<RouteAction> {
    let sticky = options.sticky.and_then(|field| sticky(r, &field)).unwrap_or_default();
    let (force_header, force_cookie) = options.force.map(|field| force(r, &field)).unwrap_or_default();
    let mut sides = Vec::new();
    for side in field.section(r)?.take_all(r) {
        let cluster = clusters.named(r, &side.name, side.key_span);
        let weight = side.whole(r, 0..=MOST_WEIGHT).and_then(|weight| u32::try_from(weight).ok());
        if let (Some(cluster), Some(weight)) = (cluster, weight) {
            sides.push(Side { cluster, weight });
        }
    }
    if sides.iter().all(|side| side.weight == 0) {
        if !r.has_errors() {
            r.error(field.key_span, "no cluster has a weight above 0", "expected such as {a: 90, b: 10}");
        }
        return None;
    }
    if let (Sticky::Cookie(name), Some(forced)) = (&sticky, &force_cookie)
        && name == forced
    {
        r.error(field.key_span, format!("`sticky` and `force` use the same cookie `{name}`"), "expected two names");
    }
    Some(RouteAction::Clusters(Split { sides, sticky, force_header, force_cookie }))
}

fn sticky(r: &mut Reading<'_>, field: &Field<'_>) -> Option<Sticky> {
    if !matches!(field.node.value, Value::Map(_)) {
        return match field.word(r, &[("off", Word::Off), ("client_address", Word::ClientAddress)])? {
            Word::Off => Some(Sticky::Off),
            Word::ClientAddress => Some(Sticky::ClientAddress),
        };
    }
    let mut s = field.section(r)?;
    let name = s.take(r, "cookie").and_then(|field| cookie_name(r, &field));
    if name.is_none() {
        r.error(s.span, "`sticky` names no cookie", "expected client_address, or {cookie: NAME}");
    }
    s.finish(r);
    name.map(Sticky::Cookie)
}

#[derive(Clone, Copy)]
enum Word {
    Off,
    ClientAddress,
}

fn force(r: &mut Reading<'_>, field: &Field<'_>) -> (Option<String>, Option<String>) {
    let Some(mut s) = field.section(r) else { return (None, None) };
    let header = s.take(r, "header").and_then(|field| header_name(r, &field));
    let cookie = s.take(r, "cookie").and_then(|field| cookie_name(r, &field));
    s.finish(r);
    (header, cookie)
}

/// The name of a header, lower case.
pub fn header_name(r: &mut Reading<'_>, field: &Field<'_>) -> Option<String> {
    let name = field.text(r)?;
    if matching::is_header_name(name) {
        return Some(name.to_ascii_lowercase());
    }
    field.refuse(r, format!("`{name}` is no header name"), "expected letters, digits and -");
    None
}

fn cookie_name(r: &mut Reading<'_>, field: &Field<'_>) -> Option<String> {
    let name = field.text(r)?;
    if matching::is_header_name(name) {
        return Some(name.to_owned());
    }
    field.refuse(r, format!("`{name}` is no cookie name"), "expected letters, digits and -");
    None
}

/// Shares above this say nothing that smaller ones could not.
const MOST_WEIGHT: i64 = 1_000_000;
