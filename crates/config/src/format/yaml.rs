//! YAML into the located tree. The only file that names serde-saphyr.
//!
//! Repeated keys are kept, so that the reader can show both places. Anchors, aliases and merge keys work; what they may
//! blow a file up to is bounded, and so is nesting.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Location, SnippetMode, Spanned, UserMessageFormatter};

use crate::raw::{Entry, Node, Value};
use crate::report::Diagnostic;
use crate::source::{Source, Span};

/// Parses one YAML document. `Ok(None)`: there is nothing in it.
pub fn parse(source: &Source) -> Result<Option<Node>, Box<Diagnostic>> {
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        strict_booleans: true,
        with_snippet: false,
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 200_000,
            max_replay_stack_depth: 8,
        },
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_events: 8_000_000,
            max_nodes: 4_000_000,
            max_documents: 1,
        },
    };
    match serde_saphyr::from_str_with_options::<Spanned<Loose>>(source.text(), options) {
        Ok(root) => {
            let node = to_node(source, root);
            Ok((!node.is_null()).then_some(node))
        }
        Err(error) => Err(Box::new(syntax_error(source, &error))),
    }
}

/// Deepest nesting of lists and maps.
const MAX_DEPTH: usize = 24;

fn syntax_error(source: &Source, error: &serde_saphyr::Error) -> Diagnostic {
    let rendered = error.render_with_options(serde_saphyr::render_options! {
        formatter: &UserMessageFormatter,
        snippets: SnippetMode::Off,
    });
    // The parser puts the place behind its words; ours stands in front.
    let message = rendered.split(" at line ").next().unwrap_or(&rendered).trim();
    let message = if message.is_empty() { "this is not YAML" } else { message };
    let diagnostic = Diagnostic::error(format!("this is not valid YAML: {message}"));
    let Some(location) = error.location().filter(|location| *location != Location::UNKNOWN) else {
        return diagnostic.at(source, Span::default());
    };
    let start = source.offset(location.line(), location.column());
    let diagnostic = diagnostic.at(source, Span::new(start, start + 1));
    match indenting_tab(source, location.line()) {
        // The parser stops behind the tab, or on the line before it.
        Some(tab) if message.contains("tab") => Diagnostic::error("this is not valid YAML: a tab in the indentation")
            .at(source, Span::new(tab, tab + 1))
            .label("expected spaces"),
        Some(tab) => {
            let line = source.position(Span::new(tab, tab).start).line;
            diagnostic.help(format!("there is a tab in the indentation of line {line}: YAML wants spaces"))
        }
        None => diagnostic,
    }
}

/// The first tab among the blanks in front of a line, of the one before or of the one behind.
fn indenting_tab(source: &Source, line: u64) -> Option<usize> {
    [line, line + 1, line.saturating_sub(1)].into_iter().filter(|line| *line > 0).find_map(|line| {
        let start = source.offset(line, 1);
        let rest = source.text().get(start..)?;
        let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        rest.get(..blanks)?.find('\t').map(|at| start + at)
    })
}

/// A value as the parser gives it.
enum Loose {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Spanned<Self>>),
    Map(Vec<(Spanned<String>, Spanned<Self>)>),
}

fn to_node(source: &Source, spanned: Spanned<Loose>) -> Node {
    let span = span_of(source, spanned.referenced);
    let defined = span_of(source, spanned.defined);
    let value = match spanned.value {
        Loose::Null => Value::Null,
        Loose::Bool(value) => Value::Bool(value),
        Loose::Number(shown) => {
            // The number as written, so that 1.0 stays 1.0; anchors and tags are no part of it.
            let written = source.slice(defined).trim();
            let is_number = written.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
            Value::Number(if is_number { written.to_owned() } else { shown })
        }
        Loose::Text(text) => Value::Text(text),
        Loose::List(items) => Value::List(items.into_iter().map(|item| to_node(source, item)).collect()),
        Loose::Map(pairs) => Value::Map(
            pairs
                .into_iter()
                .map(|(key, value)| Entry {
                    key_span: span_of(source, key.referenced),
                    key: key.value,
                    node: to_node(source, value),
                })
                .collect(),
        ),
    };
    Node { span, value }
}

fn span_of(source: &Source, location: Location) -> Span {
    let span = match (location.span().byte_offset(), location.span().byte_len()) {
        (Some(start), Some(len)) => {
            let start = usize::try_from(start).unwrap_or(usize::MAX);
            Span::new(start, start.saturating_add(usize::try_from(len).unwrap_or(0)))
        }
        (Some(_) | None, Some(_) | None) => {
            let start = source.offset(location.line(), location.column());
            Span::new(start, start)
        }
    };
    source.clip(span)
}

impl<'de> Deserialize<'de> for Loose {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LooseVisitor)
    }
}

struct LooseVisitor;

impl<'de> Visitor<'de> for LooseVisitor {
    type Value = Loose;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Loose, E> {
        Ok(Loose::Null)
    }

    fn visit_none<E>(self) -> Result<Loose, E> {
        Ok(Loose::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Loose, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Loose, E> {
        Ok(Loose::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Loose, E> {
        Ok(Loose::Number(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Loose, E> {
        Ok(Loose::Number(value.to_string()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Loose, E> {
        Ok(Loose::Number(value.to_string()))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Loose, E> {
        Ok(Loose::Number(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Loose, E> {
        Ok(Loose::Number(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Loose, E> {
        Ok(Loose::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Loose, E> {
        Ok(Loose::Text(value))
    }

    fn visit_bytes<E: de::Error>(self, _: &[u8]) -> Result<Loose, E> {
        Err(E::custom("binary values have no place in a configuration"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Loose, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Loose::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Loose, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Loose::Map(map))
    }
}
