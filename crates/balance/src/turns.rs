//! What one worker remembers between two picks of RoundRobin. Lives with the worker, survives snapshots and reloads:
//! state is kept by cluster and destination id, so an unrelated change does not start the round again.

use std::sync::Arc;

use model::id::{ClusterId, DestinationId};
use model::random::Random;

use crate::candidates::Member;

/// One worker's turns, all clusters.
#[derive(Debug, Default)]
pub struct Turns {
    /// Sorted by cluster; only those with RoundRobin.
    clusters: Vec<(ClusterId, Turn)>,
}

/// One cluster's turn.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// The members that `seats` belong to.
    members: Arc<[Member]>,
    pub(crate) seats: Vec<Seat>,
    pub(crate) counter: u32,
}

/// One destination's place in the round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    pub(crate) current: i64,
    pub(crate) effective: i64,
}

/// Where counters start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Random,
    Zero,
}

impl Turns {
    /// Nothing remembered.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets clusters for which `is_alive` is false.
    pub fn retain(&mut self, mut is_alive: impl FnMut(&ClusterId) -> bool) {
        self.clusters.retain(|(id, _)| is_alive(id));
    }

    pub(crate) fn turn(
        &mut self,
        cluster: &ClusterId,
        members: &Arc<[Member]>,
        phase: Phase,
        random: &mut Random,
    ) -> &mut Turn {
        let at = match self.clusters.binary_search_by(|(id, _)| id.cmp(cluster)) {
            Ok(at) => at,
            Err(at) => {
                self.clusters.insert(at, (cluster.clone(), Turn::default()));
                at
            }
        };
        // Found or inserted just now.
        let turn = &mut self.clusters[at].1;
        if !Arc::ptr_eq(&turn.members, members) {
            turn.seat(members, phase, random);
        }
        turn
    }
}

impl Turn {
    /// Gives the members their seats: those that were there keep them.
    fn seat(&mut self, members: &Arc<[Member]>, phase: Phase, random: &mut Random) {
        let total: u64 = members.iter().map(|member| u64::from(member.weight)).sum();
        let before = || self.members.iter().zip(&self.seats);
        let most = i64::try_from(total).unwrap_or(i64::MAX);
        let is_same = |id: &DestinationId, known: &(&Member, &Seat)| known.0.id == *id;
        // Mostly the same members in the same places: look there first.
        let kept = |at: usize, id: &DestinationId| {
            let here = before().nth(at).filter(|known| is_same(id, known));
            here.or_else(|| before().find(|known| is_same(id, known))).map(|(_, seat)| *seat)
        };
        let seats = members
            .iter()
            .enumerate()
            .map(|(at, member)| match kept(at, &member.id) {
                // A counter of other weights must not rule the round for long.
                Some(seat) => Seat {
                    current: seat.current.clamp(-most, most),
                    effective: seat.effective.min(i64::from(member.weight)),
                },
                None => Seat {
                    current: match phase {
                        Phase::Random => random.below(usize::try_from(total).unwrap_or(usize::MAX)) as i64,
                        Phase::Zero => 0,
                    },
                    effective: i64::from(member.weight),
                },
            })
            .collect();
        self.seats = seats;
        self.members = members.clone();
    }

    /// A counted failure lowers the effective weight.
    pub(crate) fn decay(&mut self, at: usize) {
        if let (Some(seat), Some(member)) = (self.seats.get_mut(at), self.members.get(at)) {
            seat.effective = (seat.effective - i64::from(member.decay)).max(0);
        }
    }
}
