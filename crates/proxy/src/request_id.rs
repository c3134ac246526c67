//! A request's id, for logs on both sides of the proxy: kept where a trusted proxy sent a good one, else made anew.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

use http1::forward::Trust;
use http1::request::Request;
use model::config::RequestId;
use model::request::Fields;

/// Makes ids, and other bits that nobody outside can foresee. One per worker.
#[derive(Default)]
pub(crate) struct Ids {
    /// Keyed anew in each worker by the system's random bits.
    key: RandomState,
    count: Cell<u64>,
}

impl Ids {
    /// 64 bits that were never drawn before by this worker, but by chance.
    pub(crate) fn bits(&self) -> u64 {
        let count = self.count.get();
        self.count.set(count.wrapping_add(1));
        self.key.hash_one(count)
    }

    /// The id of a request; `None` where requests have none.
    pub(crate) fn of(&self, setting: &RequestId, trust: Trust, request: &Request<'_>) -> Option<Box<str>> {
        let RequestId::Header(name) = setting else { return None };
        let kept = match trust {
            Trust::Trusted => request.first(name).filter(|id| is_good(id)),
            Trust::Untrusted => None,
        };
        kept.map(Box::from).or_else(|| self.fresh(setting))
    }

    /// The id of a request that sent none, or none that could be read; `None` where requests have none.
    pub(crate) fn fresh(&self, setting: &RequestId) -> Option<Box<str>> {
        match setting {
            RequestId::Off => None,
            RequestId::Header(_) => Some(format!("{:016x}{:016x}", self.bits(), self.bits()).into()),
        }
    }
}

/// Whether an id may go into logs and fields as it is.
fn is_good(id: &str) -> bool {
    (1..=LONGEST).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~:/+=@".contains(&b))
}

const LONGEST: usize = 128;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http1::limits::HeadLimits;
    use http1::request::RequestHead;

    use super::*;

    fn id_of(fields: &str, trust: Trust) -> String {
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let mut head = RequestHead::default();
        head.parse(text.as_bytes(), &HeadLimits { line: 8192, bytes: 32768, fields: 100 }).unwrap();
        let setting = RequestId::Header("x-request-id".to_owned());
        Ids::default().of(&setting, trust, &head.view(text.as_bytes())).unwrap().into()
    }

    #[test]
    fn an_id_is_kept_from_a_trusted_proxy_only_and_only_a_good_one() {
        assert_eq!(id_of("X-Request-Id: a1-B._~:/+=@\r\n", Trust::Trusted), "a1-B._~:/+=@");
        let long = format!("X-Request-Id: {}\r\n", "a".repeat(129));
        for (fields, trust) in [
            ("X-Request-Id: a1\r\n", Trust::Untrusted),
            ("X-Request-Id: a b\r\n", Trust::Trusted),
            ("X-Request-Id: \"x\"\r\n", Trust::Trusted),
            ("X-Request-Id:\r\n", Trust::Trusted),
            (&long, Trust::Trusted),
            ("", Trust::Trusted),
        ] {
            let id = id_of(fields, trust);
            assert!(id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit()), "{id}");
        }
    }

    #[test]
    fn ids_of_one_worker_and_of_two_differ() {
        let drawn: std::collections::BTreeSet<u64> =
            [Ids::default(), Ids::default()].iter().flat_map(|ids| (0..1_000).map(|_| ids.bits())).collect();
        assert_eq!(drawn.len(), 2_000);
    }
}
