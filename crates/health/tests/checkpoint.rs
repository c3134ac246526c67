//! A core that resumes from a checkpoint goes on as the one that it was taken of, whatever has happened.

use std::sync::Arc;

use health::{Checkpoint, Core, Input, Output, Registry, ResumeError};
use model::cluster::Cluster;
use model::time::Timestamp;
use proptest::prelude::*;

use crate::inputs::{any_input, any_time};
use crate::world::*;

fn outputs(core: &mut Core) -> Vec<Output> {
    std::iter::from_fn(|| core.poll_output()).collect()
}

fn through_text(core: &Core) -> Checkpoint {
    let text = serde_json::to_string(&core.checkpoint().unwrap()).unwrap();
    serde_json::from_str(&text).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_follows_a_checkpoint_is_the_same_to_the_last_output(
        inputs in prop::collection::vec((any_time(), any_input()), 1..120),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
    ) {
        let mut core = Core::new(7);
        let mut clusters: Vec<Arc<Cluster>> = Vec::new();
        let mut resumed: Vec<Core> = Vec::new();
        let cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(inputs.len())).collect();
        for (place, (ms, input)) in inputs.into_iter().enumerate() {
            if cuts.contains(&place) {
                resumed.push(Core::resume(through_text(&core), &clusters, Registry::default()).unwrap());
            }
            if let Input::Configured { clusters: new, .. } = &input {
                clusters = new.clone();
            }
            let now = Timestamp::from_millis(ms);
            core.handle(now, input.clone());
            let expected = outputs(&mut core);
            for one in &mut resumed {
                one.handle(now, input.clone());
                prop_assert_eq!(&outputs(one), &expected);
                prop_assert_eq!(one.poll_timeout(), core.poll_timeout());
                prop_assert_eq!(one.pulse_slots(), core.pulse_slots());
                prop_assert_eq!(&one.view().clusters, &core.view().clusters);
            }
        }
    }
}

#[test]
fn no_checkpoint_is_taken_while_outputs_wait() {
    let mut core = Core::new(1);
    assert!(core.checkpoint().is_some());
    core.handle(at(1.0), Input::DrainStarted);
    assert!(core.checkpoint().is_none());
    let _ = outputs(&mut core);
    assert_eq!(core.checkpoint().unwrap().at(), at(1.0));
}

#[test]
fn a_checkpoint_of_other_clusters_is_refused() {
    let world = World::of(&[passive("app", &["a", "b"], &[max_fails(1, 10.0)])]);
    let other = Arc::new(passive("app", &["a", "c"], &[max_fails(1, 10.0)]));
    for clusters in [vec![], vec![other]] {
        let resumed = Core::resume(through_text(&world.core), &clusters, Registry::default());
        assert_eq!(resumed.err(), Some(ResumeError::Misfit));
    }
}
