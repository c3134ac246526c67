//! Rules on the values of headers and query parameters, with the meaning they have in YARP.
//!
//! All rules of a route must hold; the values within a rule are alternatives. Exact and Prefix look at each element of a
//! list header (split at `,`, in Cookie at `;`, outside of quotes; leading blanks and one pair of quotes removed);
//! Contains and NotContains look at each field's value as it came. NotContains also holds when the header is absent;
//! Exists means not empty, NotExists absent or empty. Query parameters compare in their decoded form (`+` is a blank),
//! names without case, and one matching value of a repeated parameter suffices. Case-less comparison is ASCII's.

use model::request::Fields;
use model::route::{CaseRule, ValueMode, ValueRule};

use crate::path::hex;

/// Whether the header fields satisfy a rule.
pub(crate) fn header_holds(rule: &ValueRule, fields: &dyn Fields) -> bool {
    let separator = if rule.name.eq_ignore_ascii_case("cookie") { b';' } else { b',' };
    let mut found = false;
    fields.each(&rule.name, &mut |value| {
        found = found
            || match rule.mode {
                ValueMode::Exact | ValueMode::Prefix => {
                    elements(value, separator).any(|element| compares(rule, || element.iter().copied()))
                }
                ValueMode::Contains | ValueMode::NotContains => compares(rule, || value.iter().copied()),
                ValueMode::Exists | ValueMode::NotExists => !value.is_empty(),
            };
    });
    found == is_positive(rule.mode)
}

/// Whether the query satisfies a rule.
pub(crate) fn query_holds(rule: &ValueRule, query: Option<&str>) -> bool {
    let found = query.unwrap_or("").split('&').any(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        decoded(name).map(|b| b.to_ascii_lowercase()).eq(rule.name.bytes().map(|b| b.to_ascii_lowercase()))
            && match rule.mode {
                ValueMode::Exact | ValueMode::Prefix | ValueMode::Contains | ValueMode::NotContains => {
                    compares(rule, || decoded(value))
                }
                ValueMode::Exists | ValueMode::NotExists => !value.is_empty(),
            }
    });
    found == is_positive(rule.mode)
}

/// Whether the rule holds when a value is found (or when none is).
fn is_positive(mode: ValueMode) -> bool {
    match mode {
        ValueMode::Exact | ValueMode::Prefix | ValueMode::Contains | ValueMode::Exists => true,
        ValueMode::NotContains | ValueMode::NotExists => false,
    }
}

/// Whether one of the rule's values compares with the bytes that `value` yields.
fn compares<I: Iterator<Item = u8>>(rule: &ValueRule, value: impl Fn() -> I) -> bool {
    let fold = |b: u8| match rule.case {
        CaseRule::Ignore => b.to_ascii_lowercase(),
        CaseRule::Sensitive => b,
    };
    let starts_with = |mut bytes: I, wanted: &str| wanted.bytes().all(|w| bytes.next().map(fold) == Some(fold(w)));
    rule.values.iter().any(|wanted| match rule.mode {
        ValueMode::Exact => value().map(fold).eq(wanted.bytes().map(fold)),
        ValueMode::Prefix => starts_with(value(), wanted),
        ValueMode::Contains | ValueMode::NotContains => {
            wanted.is_empty()
                || (0..value().count()).any(|from| {
                    let mut rest = value();
                    // `nth` and not `skip`, which would be another type.
                    from.checked_sub(1).is_none_or(|last| rest.nth(last).is_some()) && starts_with(rest, wanted)
                })
        }
        ValueMode::Exists | ValueMode::NotExists => false,
    })
}

/// The elements of a list header.
fn elements(value: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(value);
    std::iter::from_fn(move || {
        let current = rest?;
        let mut is_quoted = false;
        let mut is_escaped = false;
        let end = current.iter().position(|&b| {
            if is_escaped {
                is_escaped = false;
            } else if b == b'\\' && is_quoted {
                is_escaped = true;
            } else if b == b'"' {
                is_quoted = !is_quoted;
            }
            b == separator && !is_quoted
        });
        let (element, after) = match end {
            Some(end) => (current.get(..end)?, current.get(end + 1..)),
            None => (current, None),
        };
        rest = after;
        Some(unquoted(element.trim_ascii_start()))
    })
}

fn unquoted(element: &[u8]) -> &[u8] {
    match element {
        [b'"', inner @ .., b'"'] => inner,
        _ => element,
    }
}

/// A query text's bytes with `+` and escapes undone; what is no escape stays.
pub(crate) fn decoded(text: &str) -> impl Iterator<Item = u8> + '_ {
    let mut rest = text.as_bytes();
    std::iter::from_fn(move || {
        let (byte, after) = match rest {
            [] => return None,
            [b'+', after @ ..] => (b' ', after),
            [b'%', high, low, after @ ..] => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, after),
                (None, _) | (_, None) => (b'%', rest.get(1..).unwrap_or_default()),
            },
            [byte, after @ ..] => (*byte, after),
        };
        rest = after;
        Some(byte)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct One(&'static [&'static str]);

    impl Fields for One {
        fn each(&self, _: &str, visit: &mut dyn FnMut(&[u8])) {
            self.0.iter().for_each(|value| visit(value.as_bytes()));
        }
    }

    fn rule(name: &str, mode: ValueMode, values: &[&str], case: CaseRule) -> ValueRule {
        ValueRule { name: name.to_owned(), values: values.iter().map(|&v| v.to_owned()).collect(), mode, case }
    }

    /// Name, mode, values and case of the rule; the fields; whether it holds.
    type Row = (&'static str, ValueMode, &'static [&'static str], CaseRule, &'static [&'static str], bool);

    #[test]
    fn header_rules_hold_as_in_yarp() {
        use CaseRule::{Ignore, Sensitive};
        use ValueMode::{Contains, Exact, Exists, NotContains, NotExists, Prefix};
        let cases: [Row; 21] = [
            ("x", Exact, &["b"], Ignore, &["a, B,c"], true),
            ("x", Exact, &["b"], Sensitive, &["a, B,c"], false),
            ("x", Exact, &["b", "c"], Sensitive, &["a, B,c"], true),
            ("x", Exact, &["a,b"], Ignore, &["\"a,b\", c"], true),
            ("x", Exact, &["a"], Ignore, &["\"a,b\", c"], false),
            ("x", Exact, &["a"], Ignore, &[], false),
            ("x", Exact, &["a"], Ignore, &["z", "a"], true),
            ("cookie", Exact, &["k=v"], Ignore, &["a=b,c; k=v"], true),
            ("x", Prefix, &["ab"], Ignore, &["ABC"], true),
            ("x", Prefix, &["abcd"], Ignore, &["ABC"], false),
            ("x", Contains, &["b,c"], Ignore, &["a b,c d"], true),
            ("x", Contains, &["q"], Ignore, &["a"], false),
            ("x", NotContains, &["q"], Ignore, &["a"], true),
            ("x", NotContains, &["q"], Ignore, &["a", "q"], false),
            ("x", NotContains, &["q"], Ignore, &[], true),
            ("x", Exists, &[], Ignore, &["a"], true),
            ("x", Exists, &[], Ignore, &[""], false),
            ("x", Exists, &[], Ignore, &[], false),
            ("x", NotExists, &[], Ignore, &[], true),
            ("x", NotExists, &[], Ignore, &[""], true),
            ("x", NotExists, &[], Ignore, &["a"], false),
        ];
        for (name, mode, values, case, fields, holds) in cases {
            let rule = rule(name, mode, values, case);
            assert_eq!(header_holds(&rule, &One(fields)), holds, "{rule:?} {fields:?}");
        }
    }

    #[test]
    fn query_rules_hold_as_in_yarp() {
        use CaseRule::Ignore;
        use ValueMode::{Contains, Exact, Exists, NotContains, NotExists, Prefix};
        for (mode, values, query, holds) in [
            (Exact, &["a b"][..], Some("Q=A%20b"), true),
            (Exact, &["a b"], Some("q=a+b"), true),
            (Exact, &["1"], Some("q=2&q=1"), true),
            (Exact, &["1"], Some("qq=1"), false),
            (Exact, &["1"], None, false),
            (Prefix, &["ab"], Some("q=abc"), true),
            (Contains, &["bc"], Some("x&q=abcd"), true),
            (NotContains, &["bc"], Some("q=abcd"), false),
            (NotContains, &["bc"], None, true),
            (Exists, &[], Some("q=1"), true),
            (Exists, &[], Some("q="), false),
            (Exists, &[], Some("q"), false),
            (NotExists, &[], Some("q"), true),
            (NotExists, &[], Some("q=1"), false),
            (Exact, &["%zz"], Some("q=%zz"), true),
        ] {
            let rule = rule("q", mode, values, Ignore);
            assert_eq!(query_holds(&rule, query), holds, "{rule:?} {query:?}");
        }
    }
}
