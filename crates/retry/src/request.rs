//! What the retry rules need to know of a request, taken once when its head arrives.

use model::request::{Method, RequestFacts};

/// The facts of a request that decide whether it may be sent twice. Copied out, so that the head's bytes need not stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeatable {
    /// The method.
    pub method: Method,
    /// LOCK (RFC 4918 9.10), which nginx does not repeat; otherwise a method like any unknown one.
    pub is_lock: bool,
    /// An `Idempotency-Key` is there (draft-ietf-httpapi-idempotency-key-header).
    pub has_key: bool,
    /// If-Match, If-None-Match, If-Unmodified-Since or Content-Range is there: a second try of a changing method would
    /// see what the first one did and answer 412, or write a part twice.
    pub is_conditional: bool,
    /// The client asks for another protocol.
    pub is_upgrade: bool,
    /// It is repeated already, by a proxy before this one: what has reached a destination is not repeated here as well,
    /// or each hop would multiply the attempts of the next.
    pub is_repeat: bool,
}

impl Repeatable {
    /// Reads the facts of a request.
    pub fn of(facts: &RequestFacts<'_>) -> Self {
        // Safe methods are repeated whatever their fields say: no look-ups for them.
        let is_changing = !facts.method.is_safe();
        Self {
            method: facts.method,
            is_lock: facts.method == Method::Other && facts.method_name == "LOCK",
            has_key: is_changing && facts.fields.has("idempotency-key"),
            is_conditional: is_changing && CONDITIONAL.iter().any(|name| facts.fields.has(name)),
            is_upgrade: facts.is_upgrade || facts.method == Method::Connect,
            is_repeat: facts.attempt > 1,
        }
    }
}

/// Fields that make the second try of a changing method differ from the first (RFC 9110 13.1, 14.4).
const CONDITIONAL: [&str; 4] = ["if-match", "if-none-match", "if-unmodified-since", "content-range"];
