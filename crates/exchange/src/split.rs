//! To which of several clusters a request goes: by weight, each client staying on its side where that is asked for.
//!
//! ```text
//!   forced by header, by cookie ──> that side (also one of weight 0)
//!   sticky by cookie            ──> the cookie's side while its weight is above 0, else drawn and the cookie set
//!   sticky by client address    ──> by a hash of the address
//!   else                        ──> drawn
//! ```
//! A side whose weight becomes 0 gives its sticky clients up: that is how a canary is rolled back. The hash is the same
//! for every route, so that a client is on the same side of two routes with the same shares. It takes IPv6 clients by
//! their /64, whose addresses one host may change at will.

use std::sync::Arc;

use balance::affinity::{cookie, key};
use model::affinity::AffinityCookie;
use model::id::{ClusterId, ClusterIndex};
use model::random::Random;
use model::request::RequestFacts;
use model::route::{Split, Sticky};

use crate::limit::ClientKey;

/// A split with its clusters resolved.
#[derive(Debug)]
pub struct SplitView {
    sides: Vec<SideView>,
    total: u64,
    sticky: Sticky,
    force_header: Option<String>,
    force_cookie: Option<String>,
}

#[derive(Debug)]
struct SideView {
    cluster: ClusterIndex,
    id: ClusterId,
    /// The value of the sticky cookie: a hash, which tells nobody what the sides are called.
    key: Arc<str>,
    weight: u32,
}

/// What was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) cluster: ClusterIndex,
    /// The side that a cookie is to be set for.
    pub(crate) drawn: Option<usize>,
}

impl SplitView {
    /// Resolves a split. `place` finds a cluster; sides without one take no part.
    pub fn of(split: &Split, place: impl Fn(&ClusterId) -> Option<ClusterIndex>) -> Self {
        let side = |side: &model::route::Side| {
            Some(SideView {
                cluster: place(&side.cluster)?,
                id: side.cluster.clone(),
                key: key(side.cluster.as_str()).into(),
                weight: side.weight,
            })
        };
        let sides: Vec<_> = split.sides.iter().filter_map(side).collect();
        Self {
            total: sides.iter().map(|side| u64::from(side.weight)).sum(),
            sides,
            sticky: split.sticky.clone(),
            force_header: split.force_header.clone(),
            force_cookie: split.force_cookie.clone(),
        }
    }

    /// The side of a request; `None` when there is none.
    pub(crate) fn choose(&self, facts: &RequestFacts<'_>, random: &mut Random) -> Option<Choice> {
        if let Some(side) = self.forced(facts) {
            return Some(Choice { cluster: side.cluster, drawn: None });
        }
        match &self.sticky {
            Sticky::Off => self.at(random.bits()).map(|(_, side)| Choice { cluster: side.cluster, drawn: None }),
            Sticky::ClientAddress => {
                let bits = ClientKey::of_address(facts.client).spread();
                self.at(bits).map(|(_, side)| Choice { cluster: side.cluster, drawn: None })
            }
            Sticky::Cookie(name) => {
                let known = self.by_cookie(facts, name, |side, value| {
                    side.weight > 0 && side.key.as_bytes().eq_ignore_ascii_case(value)
                });
                match known {
                    Some(side) => Some(Choice { cluster: side.cluster, drawn: None }),
                    None => {
                        let (at, side) = self.at(random.bits())?;
                        Some(Choice { cluster: side.cluster, drawn: Some(at) })
                    }
                }
            }
        }
    }

    /// The cookie that keeps a client on a side that was drawn for it.
    pub(crate) fn set_cookie(&self, drawn: usize) -> Option<String> {
        match &self.sticky {
            Sticky::Cookie(name) => {
                Some(cookie::set_cookie(name, &self.sides.get(drawn)?.key, &AffinityCookie::default()))
            }
            Sticky::Off | Sticky::ClientAddress => None,
        }
    }

    fn forced(&self, facts: &RequestFacts<'_>) -> Option<&SideView> {
        let mut found = None;
        if let Some(name) = &self.force_header {
            facts.fields.each(name, &mut |value| {
                found = found.or_else(|| self.sides.iter().find(|side| side.id.as_str().as_bytes() == value));
            });
        }
        let name = self.force_cookie.as_ref();
        found.or_else(|| self.by_cookie(facts, name?, |side, value| side.id.as_str().as_bytes() == value))
    }

    /// The side that the first cookie of this name that names any stands for.
    fn by_cookie(
        &self,
        facts: &RequestFacts<'_>,
        name: &str,
        is_named: impl Fn(&SideView, &[u8]) -> bool,
    ) -> Option<&SideView> {
        let mut found = None;
        facts.fields.each("cookie", &mut |line| {
            for value in cookie::values(line, name.as_bytes()) {
                found = found.or_else(|| self.sides.iter().find(|side| is_named(side, value)));
            }
        });
        found
    }

    /// The side at a point of 64 bits, all shares laid end to end over them.
    fn at(&self, bits: u64) -> Option<(usize, &SideView)> {
        // Below the total, which 2^64 sides of 2^32 would not exceed in 128 bits.
        let mut point = (u128::from(bits) * u128::from(self.total)) >> 64;
        for (at, side) in self.sides.iter().enumerate() {
            let weight = u128::from(side.weight);
            if point < weight {
                return Some((at, side));
            }
            point -= weight;
        }
        None
    }
}
