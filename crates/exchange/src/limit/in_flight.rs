//! Requests in flight by client, or connections. Who has none is not remembered, so the table is no larger than the number of
//! those that there are at all.

use std::collections::BTreeMap;

use super::{ClientKey, Rule};

/// Counts by rule and client.
#[derive(Debug, Default)]
pub struct InFlight {
    counts: BTreeMap<(Rule, ClientKey), u32>,
}

impl InFlight {
    /// Counts one more; false, and nothing counted, when the client has `most` already. Each true is to be followed by
    /// one [`InFlight::leave`].
    pub fn enter(&mut self, rule: Rule, client: ClientKey, most: u32) -> bool {
        let count = self.counts.entry((rule, client)).or_default();
        let is_admitted = *count < most.max(1);
        if is_admitted {
            *count += 1;
        }
        is_admitted
    }

    /// Counts one less.
    pub fn leave(&mut self, rule: Rule, client: ClientKey) {
        let key = (rule, client);
        if let Some(count) = self.counts.get_mut(&key) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.counts.remove(&key);
            }
        }
    }

    /// Clients that are counted.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::id::RouteId;

    #[test]
    fn a_client_may_have_so_many_at_once_and_is_forgotten_after() {
        let rule = Rule::of(&RouteId::from("r"));
        let mut table = InFlight::default();
        let enter = |table: &mut InFlight, client| table.enter(rule, ClientKey::V4(client), 2);
        assert!(enter(&mut table, 1) && enter(&mut table, 1) && !enter(&mut table, 1));
        assert!(enter(&mut table, 2));
        table.leave(rule, ClientKey::V4(1));
        assert!(enter(&mut table, 1) && !enter(&mut table, 1));
        for client in [1, 1, 2, 3] {
            table.leave(rule, ClientKey::V4(client));
        }
        assert!(table.is_empty());
    }
}
