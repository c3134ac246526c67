//! A file as it was written, each value with its place: what every format is parsed into before anything is decided.
//!
//! One tree for YAML and JSON instead of one struct per section: a struct stops at its first error, a tree can be read
//! to the end ([`section`]), so that one run names everything that is wrong.

pub mod path;
pub mod scalar;
pub mod section;

use crate::source::Span;

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where it stands; for lists and maps where they begin.
    pub span: Span,
    /// What stands there.
    pub value: Value,
}

/// What can stand at a place.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`, `~` or nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as written.
    Number(String),
    /// A text, quotes and escapes resolved.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A map, in the order of the file, repeated keys included.
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub key_span: Span,
    /// The value.
    pub node: Node,
}

impl Value {
    /// What it is, with its article, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a truth value",
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a block of keys",
        }
    }
}

impl Node {
    /// The text of a scalar, numbers and truth values as written; `None` for all else.
    pub fn scalar(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) | Value::Number(text) => Some(text),
            Value::Bool(true) => Some("true"),
            Value::Bool(false) => Some("false"),
            Value::Null | Value::List(_) | Value::Map(_) => None,
        }
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        self.value == Value::Null
    }
}
