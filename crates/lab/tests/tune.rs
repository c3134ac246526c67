//! A sweep finds the front of what its scenarios ask.

use lab::compare::Plan;
use lab::policy::Policy;
use lab::tune::{Axis, points, sweep};
use lab::verdict::verdicts;

use crate::support::{read, three};

#[test]
fn a_sweep_tries_every_combination_and_keeps_what_nobody_beats() {
    let axes = ["fails=1,5,1000000", "time=5s,30s"].map(|text| Axis::parse(text).unwrap());
    let template = "passive: {policies: [{name: MaxFails, max_fails: $fails, fail_timeout: $time}]}";
    let policies = sweep(template, &axes).unwrap();
    assert_eq!(policies.len(), 6);
    let faults = "[{kind: errors, on: [b], at: 10s, lasts: 20s, share: 1, status: 503}]";
    let plan = Plan::new(read(&three(faults)), policies, 1, 2);
    let points = points(&[plan.run_all().unwrap()]);
    assert_eq!(points.len(), 6);
    let failures = |name: &str| points.iter().find(|point| point.name == name).unwrap().failures;
    assert!(failures("fails=1 time=5s") < failures("fails=1000000 time=5s"));
    assert!(points.iter().any(|point| point.is_on_front));
    // Never to eject fails most and loses nothing.
    let never = points.iter().find(|point| point.name == "fails=1000000 time=5s").unwrap();
    assert_eq!(never.lost, 0.0);
}

#[test]
fn a_verdict_counts_what_is_beyond_luck_and_names_who_beats_in_all() {
    let faults = "[{kind: errors, on: [b], at: 10s, lasts: 40s, share: 1, status: 503}]";
    let policies = ["active", "max_fails"].map(|name| Policy::find(name).unwrap()).to_vec();
    let comparison = Plan::new(read(&three(faults)), policies, 1, 3).run_all().unwrap();
    // Probes stay green, so `active` takes nobody out: most failures, nothing lost.
    let verdicts = verdicts(std::slice::from_ref(&comparison), "active");
    assert_eq!(verdicts.len(), 1);
    assert!(verdicts[0].mine[0] > 5.0 * verdicts[0].best[0], "{verdicts:?}");
    assert_eq!(verdicts[0].mine[2], 0.0);
    assert!(verdicts[0].beaten_by.is_empty() && verdicts[0].held >= 1, "{verdicts:?}");
    assert!(lab::verdict::verdicts(&[comparison], "nobody").is_empty());
}

#[test]
fn what_the_template_does_not_hold_is_a_mistake() {
    assert!(Axis::parse("fails").is_err());
    assert!(Axis::parse("fails=1,,2").is_err());
    let axis = Axis::parse("other=1").unwrap();
    assert!(sweep("passive: {policies: [{name: MaxFails}]}", &[axis]).is_err());
}
