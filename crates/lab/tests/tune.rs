//! A sweep finds the front of what its scenarios ask.

use lab::compare::Plan;
use lab::tune::{Axis, points, sweep};

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
fn what_the_template_does_not_hold_is_a_mistake() {
    assert!(Axis::parse("fails").is_err());
    assert!(Axis::parse("fails=1,,2").is_err());
    let axis = Axis::parse("other=1").unwrap();
    assert!(sweep("passive: {policies: [{name: MaxFails}]}", &[axis]).is_err());
}
