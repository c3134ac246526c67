//! Errors of the health-check endpoints: one key, `error_msg`, with APISIX's texts, because scripts look for them.

use serde::{Deserialize, Serialize};

/// Body of an error answer. Its constructors are APISIX's texts; the status stands beside each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// Words for people.
    pub error_msg: String,
}

impl ErrorBody {
    /// Any text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { error_msg: text.into() }
    }

    /// 404: no such object.
    pub fn not_found(kind: SourceKind, id: &str) -> Self {
        Self::new(format!("{}[{id}] not found", kind.as_str()))
    }

    /// 404: the object has no checks (APISIX from 3.3), or this worker has no checker (before).
    pub fn no_checker(kind: SourceKind, id: &str) -> Self {
        Self::new(format!("no checker for {}[{id}]", kind.as_str()))
    }

    /// 404: the path ends after the type.
    pub fn missing_id(kind: SourceKind) -> Self {
        Self::new(format!("missing src id for src type {}", kind.as_str()))
    }

    /// 400: a type that is none.
    pub fn invalid_kind(word: &str) -> Self {
        Self::new(format!("invalid src type {word}"))
    }
}

/// Kinds of objects that can have checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceKind {
    /// `routes`
    Routes,
    /// `services`
    Services,
    /// `upstreams`
    Upstreams,
    /// `stream_routes` (from 3.16)
    StreamRoutes,
}

impl SourceKind {
    /// The word in the path.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Routes => "routes",
            Self::Services => "services",
            Self::Upstreams => "upstreams",
            Self::StreamRoutes => "stream_routes",
        }
    }

    /// The kind of a word in the path; `None` for any other word (the singular forms, too).
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Routes, Self::Services, Self::Upstreams, Self::StreamRoutes]
            .into_iter()
            .find(|kind| kind.as_str() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_apisix() {
        let kind = SourceKind::Upstreams;
        assert_eq!(ErrorBody::not_found(kind, "api").error_msg, "upstreams[api] not found");
        assert_eq!(ErrorBody::no_checker(kind, "api").error_msg, "no checker for upstreams[api]");
        assert_eq!(ErrorBody::missing_id(kind).error_msg, "missing src id for src type upstreams");
        assert_eq!(ErrorBody::invalid_kind("upstream").error_msg, "invalid src type upstream");
    }

    #[test]
    fn only_plural_words_are_kinds() {
        assert_eq!(SourceKind::from_word("stream_routes"), Some(SourceKind::StreamRoutes));
        assert_eq!(SourceKind::from_word("upstream"), None);
    }
}
