//! JSON with comments into the located tree. The only file that names jsonc-parser.
//!
//! As .NET reads its settings files: comments and trailing commas are allowed. Bare members (`"Clusters": {…}` without
//! braces around them, as documentation prints them) count as if the braces were there.

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use crate::FileKind;
use crate::raw::{Entry, Node, Value};
use crate::report::Diagnostic;
use crate::source::{Source, Span};

/// Parses JSON. `Ok(None)`: there is nothing in it.
pub fn parse(source: &Source) -> Result<Option<Node>, Box<Diagnostic>> {
    let bare = has_bare_members(source.text());
    let wrapped;
    let (text, shift) = if bare {
        wrapped = format!("{{{}\n}}", source.text());
        (wrapped.as_str(), 1)
    } else {
        (source.text(), 0)
    };
    let options = ParseOptions {
        allow_comments: true,
        allow_loose_object_property_names: false,
        allow_trailing_commas: true,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let place = |range: jsonc_parser::common::Range| {
        source.clip(Span::new(range.start.saturating_sub(shift), range.end.saturating_sub(shift)))
    };
    match parse_to_ast(text, &CollectOptions::default(), &options) {
        Ok(parsed) => Ok(parsed.value.map(|value| to_node(&value, &place)).filter(|node| !node.is_null())),
        Err(error) => {
            let message = format!("this is not valid JSON: {}", lower_first(&error.kind().to_string()));
            Err(Box::new(Diagnostic::error(message).at(source, place(error.range()))))
        }
    }
}

/// Tells YARP's JSON from the native format by the names of its sections.
pub fn detect(source: &Source) -> FileKind {
    let start = skip_blank(source.text());
    if !start.starts_with(['{', '"']) {
        return FileKind::Native;
    }
    let is_yarp = match parse(source) {
        Ok(Some(Node { value: Value::Map(entries), .. })) => entries.iter().any(|entry| is_yarp_section(&entry.key)),
        // Not JSON; the parser whose words the file seems to speak gives the better error.
        Ok(_) | Err(_) => start.contains("\"ReverseProxy\"") || start.contains("\"Clusters\""),
    };
    if is_yarp { FileKind::Yarp } else { FileKind::Native }
}

fn is_yarp_section(key: &str) -> bool {
    key.eq_ignore_ascii_case("ReverseProxy") || matches!(key, "Clusters" | "Routes" | "Kestrel")
}

fn has_bare_members(text: &str) -> bool {
    skip_blank(text).starts_with('"')
}

/// The text behind leading blanks and comments.
fn skip_blank(text: &str) -> &str {
    let mut rest = text.trim_start();
    loop {
        let after = if let Some(comment) = rest.strip_prefix("//") {
            comment.split_once('\n').map_or("", |(_, after)| after)
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.split_once("*/").map_or("", |(_, after)| after)
        } else {
            return rest;
        };
        rest = after.trim_start();
    }
}

fn to_node(value: &ast::Value<'_>, place: &dyn Fn(jsonc_parser::common::Range) -> Span) -> Node {
    let span = place(value.range());
    let value = match value {
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::BooleanLit(literal) => Value::Bool(literal.value),
        ast::Value::NumberLit(literal) => Value::Number(literal.value.to_owned()),
        ast::Value::StringLit(literal) => Value::Text(literal.value.clone().into_owned()),
        ast::Value::Array(array) => Value::List(array.elements.iter().map(|item| to_node(item, place)).collect()),
        ast::Value::Object(object) => Value::Map(
            object
                .properties
                .iter()
                .map(|property| Entry {
                    key: property.name.as_str().to_owned(),
                    key_span: place(property.name.range()),
                    node: to_node(&property.value, place),
                })
                .collect(),
        ),
    };
    // A block is shown by where it begins.
    let span = match value {
        Value::List(_) | Value::Map(_) => Span { start: span.start, end: span.end.min(span.start + 1) },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => span,
    };
    Node { span, value }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
