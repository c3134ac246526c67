//! Host buckets: for each host name that some route names, the routes that can match it, wider ones included.
//!
//! A look-up therefore ends in exactly one bucket: that of the exact name, else that of the longest wildcard, else the
//! one of routes that name no host. Names are sorted, look-ups are binary searches.

use model::route::{HostKind, HostPattern};

/// The buckets' names, each with the index of its bucket.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    /// Whole names, sorted.
    exact: Vec<String>,
    /// Domains below which any name matches, sorted.
    wildcard: Vec<String>,
}

impl Hosts {
    /// Collects the names of all patterns.
    pub(crate) fn new<'a>(patterns: impl Iterator<Item = &'a HostPattern>) -> Self {
        let mut hosts = Self::default();
        for pattern in patterns {
            match pattern.kind {
                HostKind::Exact => hosts.exact.push(pattern.name.to_ascii_lowercase()),
                HostKind::Wildcard => hosts.wildcard.push(pattern.name.to_ascii_lowercase()),
            }
        }
        for names in [&mut hosts.exact, &mut hosts.wildcard] {
            names.sort_unstable();
            names.dedup();
        }
        hosts
    }

    /// How many buckets there are: exact names, then wildcards, then the one for all other hosts.
    pub(crate) fn count(&self) -> usize {
        self.exact.len() + self.wildcard.len() + 1
    }

    /// The bucket of a request's host.
    pub(crate) fn find(&self, host: &str) -> usize {
        // Most configurations name no host at all, and most requests come in lower case.
        let place = |names: &[String], wanted: &str| names.binary_search_by(|name| compare(name, wanted)).ok();
        if let Some(at) = place(&self.exact, host) {
            return at;
        }
        if !self.wildcard.is_empty() {
            let mut rest = host;
            while let Some((first, domain)) = rest.split_once('.') {
                if !(first.is_empty() && rest.len() == host.len())
                    && let Some(at) = place(&self.wildcard, domain)
                {
                    return self.exact.len() + at;
                }
                rest = domain;
            }
        }
        self.count() - 1
    }

    /// Whether hosts of this bucket match a pattern, its port apart.
    pub(crate) fn admits(&self, bucket: usize, pattern: &HostPattern) -> bool {
        if let Some(name) = self.exact.get(bucket) {
            return matches(name, pattern);
        }
        let Some(domain) = self.wildcard.get(bucket - self.exact.len()) else {
            return false;
        };
        match pattern.kind {
            HostKind::Exact => false,
            // Any name below the bucket's domain also lies below each domain above that.
            HostKind::Wildcard => domain.eq_ignore_ascii_case(&pattern.name) || matches(domain, pattern),
        }
    }
}

/// Whether a host matches a pattern, its port apart.
pub(crate) fn matches(host: &str, pattern: &HostPattern) -> bool {
    match pattern.kind {
        HostKind::Exact => host.eq_ignore_ascii_case(&pattern.name),
        HostKind::Wildcard => {
            host.len().checked_sub(pattern.name.len()).and_then(|at| host.get(..at).zip(host.get(at..))).is_some_and(
                |(below, domain)| below.len() > 1 && below.ends_with('.') && domain.eq_ignore_ascii_case(&pattern.name),
            )
        }
    }
}

/// Compares a name in lower case with one in any case.
fn compare(name: &str, wanted: &str) -> std::cmp::Ordering {
    name.bytes().cmp(wanted.bytes().map(|b| b.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> HostPattern {
        match text.strip_prefix("*.") {
            Some(name) => HostPattern { name: name.to_owned(), kind: HostKind::Wildcard, port: None },
            None => HostPattern { name: text.to_owned(), kind: HostKind::Exact, port: None },
        }
    }

    #[test]
    fn a_wildcard_matches_all_names_below_and_not_itself() {
        for (host, is_match) in [
            ("a.example.com", true),
            ("a.b.example.com", true),
            ("A.Example.Com", true),
            ("example.com", false),
            (".example.com", false),
            ("badexample.com", false),
            ("", false),
            ("ä.example.com", true),
        ] {
            assert_eq!(matches(host, &pattern("*.example.com")), is_match, "{host}");
            let patterns = [pattern("*.example.com")];
            let hosts = Hosts::new(patterns.iter());
            assert_eq!(hosts.find(host) == 0, is_match, "{host}");
        }
    }

    #[test]
    fn the_longest_name_has_its_own_bucket_that_admits_the_wider_patterns() {
        let patterns = ["a.b.c", "*.b.c", "*.c", "x"].map(pattern);
        let hosts = Hosts::new(patterns.iter());
        let admitted = |host: &str| {
            let bucket = hosts.find(host);
            patterns.iter().map(|p| hosts.admits(bucket, p)).collect::<Vec<_>>()
        };
        assert_eq!(admitted("a.b.c"), [true, true, true, false]);
        assert_eq!(admitted("z.b.c"), [false, true, true, false]);
        assert_eq!(admitted("z.c"), [false, false, true, false]);
        assert_eq!(admitted("c"), [false, false, false, false]);
        assert_eq!(admitted("X"), [false, false, false, true]);
    }
}
