//! The paths of one host bucket as a trie over segments, so that a look-up touches only routes whose path matches.
//!
//! ```text
//!   root ── "api" ── {parameter} ── end: routes 4, 7
//!     │        └──── rest: 12          (optional: one or none; catch-all: any number, also none)
//!     └──── rest: 20                   (routes without a path)
//! ```
//!
//! Each node knows the best (lowest) rank below it, so branches that cannot win any more are left out.

use model::pattern::{PathPattern, Segment};

use crate::path::{Segments, normal};

/// A node: what may follow after the segments that led here.
#[derive(Debug)]
pub(crate) struct Node {
    /// Literal segments in normal form, sorted.
    literals: Vec<(Vec<u8>, Self)>,
    /// Any one segment that is not empty.
    parameter: Option<Box<Self>>,
    /// Ranks of patterns that end here, ascending.
    ends: Vec<u32>,
    /// Ranks of patterns that go on with at most one segment, ascending.
    optionals: Vec<u32>,
    /// Ranks of patterns that go on with whatever comes, ascending.
    catch_alls: Vec<u32>,
    /// The lowest rank in this node and below.
    best: u32,
}

impl Default for Node {
    fn default() -> Self {
        Self {
            literals: Vec::new(),
            parameter: None,
            ends: Vec::new(),
            optionals: Vec::new(),
            catch_alls: Vec::new(),
            best: u32::MAX,
        }
    }
}

impl Node {
    /// Adds a pattern. Ranks must come in ascending order.
    pub(crate) fn insert(&mut self, path: Option<&PathPattern>, rank: u32) {
        match path {
            Some(path) => self.insert_segments(&path.segments, rank),
            None => {
                self.best = self.best.min(rank);
                self.catch_alls.push(rank);
            }
        }
    }

    fn insert_segments(&mut self, segments: &[Segment], rank: u32) {
        self.best = self.best.min(rank);
        let Some((first, rest)) = segments.split_first() else {
            self.ends.push(rank);
            return;
        };
        match first {
            Segment::Literal(text) => {
                let name: Vec<u8> = normal(text).collect();
                let at = match self.literals.binary_search_by(|(known, _)| known.cmp(&name)) {
                    Ok(at) => at,
                    Err(at) => {
                        self.literals.insert(at, (name, Self::default()));
                        at
                    }
                };
                if let Some((_, node)) = self.literals.get_mut(at) {
                    node.insert_segments(rest, rank);
                }
            }
            Segment::Parameter(_) => self.parameter.get_or_insert_default().insert_segments(rest, rank),
            Segment::Optional(_) => self.optionals.push(rank),
            Segment::CatchAll(_) => self.catch_alls.push(rank),
        }
    }

    /// The lowest rank below `best` whose path matches and that `accept` accepts, else `best`. `accept` sees the ranks
    /// of matching paths only, each list in ascending order.
    pub(crate) fn find(&self, mut path: Segments<'_>, best: u32, accept: &mut impl FnMut(u32) -> bool) -> u32 {
        if self.best >= best {
            return best;
        }
        let here = path;
        let mut best = best;
        match path.next() {
            None => best = first(&self.ends, best, accept),
            Some(segment) => {
                if let Some(node) = self.literal(segment) {
                    best = node.find(path, best, accept);
                }
                if !segment.is_empty()
                    && let Some(node) = &self.parameter
                {
                    best = node.find(path, best, accept);
                }
            }
        }
        if !self.optionals.is_empty() && is_one_or_none(here) {
            best = first(&self.optionals, best, accept);
        }
        first(&self.catch_alls, best, accept)
    }

    /// The node behind a literal segment. Where it can, the search compares slices.
    fn literal(&self, segment: &str) -> Option<&Self> {
        if self.literals.is_empty() {
            return None;
        }
        let bytes = segment.as_bytes();
        if let [(name, node)] = self.literals.as_slice() {
            if name.eq_ignore_ascii_case(bytes) {
                return Some(node);
            }
            if !bytes.contains(&b'%') {
                return None;
            }
        }
        let mut short = [0; SHORT];
        let found = match short.get_mut(..bytes.len()) {
            // Without an escape the normal form is the lower case.
            Some(form) if !bytes.contains(&b'%') => {
                form.copy_from_slice(bytes);
                form.make_ascii_lowercase();
                self.literals.binary_search_by(|(name, _)| name.as_slice().cmp(form))
            }
            Some(_) | None => self.literals.binary_search_by(|(name, _)| name.iter().copied().cmp(normal(segment))),
        };
        found.ok().and_then(|at| self.literals.get(at)).map(|(_, node)| node)
    }
}

fn is_one_or_none(mut path: Segments<'_>) -> bool {
    match path.next() {
        None => true,
        Some(segment) => !segment.is_empty() && path.next().is_none(),
    }
}

/// Longer segments than this are compared byte by byte.
const SHORT: usize = 64;

fn first(ranks: &[u32], best: u32, accept: &mut impl FnMut(u32) -> bool) -> u32 {
    ranks.iter().copied().take_while(|&rank| rank < best).find(|&rank| accept(rank)).unwrap_or(best)
}
