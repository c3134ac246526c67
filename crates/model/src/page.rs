//! What clients see in place of a short line when an answer is our own, and when a route is closed for a while.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// A body for answers of our own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorPage {
    /// For which statuses.
    pub status: PageStatus,
    /// Its media type.
    pub content_type: String,
    /// The body, at most [`LONGEST_BODY`] bytes.
    pub body: Arc<str>,
    /// The file that holds the body, if it does not stand in the configuration. Whoever loads the configuration reads it
    /// into `body`, which is empty before.
    pub file: Option<PathBuf>,
}

/// The statuses of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageStatus {
    /// This one, 400 to 599.
    One(u16),
    /// All of a hundred: 4 or 5.
    Class(u16),
}

/// No body of a page or of a maintenance is longer.
pub const LONGEST_BODY: usize = 64 * 1024;

impl std::fmt::Display for PageStatus {
    /// As the configuration says it: `503`, `5xx`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::One(status) => write!(f, "{status}"),
            Self::Class(class) => write!(f, "{class}xx"),
        }
    }
}

/// The page of a status: the first that names it, else the first of its class.
pub fn page(pages: &[ErrorPage], status: u16) -> Option<&ErrorPage> {
    let of = |wanted: PageStatus| pages.iter().find(move |page| page.status == wanted);
    of(PageStatus::One(status)).or_else(|| of(PageStatus::Class(status / 100)))
}

/// A route that is closed for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maintenance {
    /// Status of the answer, 400 to 599; 503 unless set.
    pub status: u16,
    /// Its body, text/plain; `None`: the error page of the status, else one line.
    pub body: Option<String>,
    /// Value of Retry-After, seconds.
    pub retry_after: Option<u32>,
    /// Clients that pass all the same.
    pub allow: Vec<IpNet>,
}

impl Maintenance {
    /// Whether `address` passes all the same. IPv4 in IPv6 counts as IPv4.
    pub fn lets_pass(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.allow.iter().any(|network| network.contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_for_the_status_goes_before_one_for_its_class() {
        let page_of = |status| ErrorPage { status, content_type: String::new(), body: "".into(), file: None };
        let pages = [page_of(PageStatus::Class(5)), page_of(PageStatus::One(503))];
        let found = |status| page(&pages, status).map(|page| page.status);
        assert_eq!(found(503), Some(PageStatus::One(503)));
        assert_eq!(found(502), Some(PageStatus::Class(5)));
        assert_eq!(found(404), None);
    }
}
