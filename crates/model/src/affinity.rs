//! Session affinity: a client stays with the destination that served it first.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The session affinity of a cluster. Present means on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionAffinity {
    /// How the key is made and carried.
    pub policy: AffinityPolicy,
    /// What happens to a client whose destination is not available.
    pub failure_policy: AffinityFailurePolicy,
    /// Name of the cookie (or header).
    pub key_name: String,
    /// Attributes of the cookie.
    pub cookie: AffinityCookie,
}

/// How the key is made and carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AffinityPolicy {
    /// Cookie with a hash of the destination's id: lower-case hex of XXH64 over the upper-cased id in UTF-16LE.
    HashCookie,
}

/// What happens to a client whose destination is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AffinityFailurePolicy {
    /// Another destination is chosen and pinned.
    Redistribute,
    /// 503, and the pin stays.
    Return503Error,
}

/// Attributes of the affinity cookie. Defaults are YARP's: Path `/`, HttpOnly, session lifetime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AffinityCookie {
    /// `Path`.
    pub path: String,
    /// `Domain`.
    pub domain: Option<String>,
    /// `HttpOnly`.
    pub http_only: bool,
    /// `Secure`.
    pub secure: bool,
    /// `SameSite`: Strict, Lax or None.
    pub same_site: Option<String>,
    /// `Max-Age`.
    pub max_age: Option<Duration>,
}

impl Default for AffinityCookie {
    fn default() -> Self {
        Self { path: "/".to_owned(), domain: None, http_only: true, secure: false, same_site: None, max_age: None }
    }
}
