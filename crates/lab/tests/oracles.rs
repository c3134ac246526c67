//! Nobody beats both oracles by more than luck where the truth is what counts.

use lab::compare::Plan;
use lab::policy::Policy;
use lab::scenario;

#[test]
fn no_policy_beats_the_better_oracle_by_more_than_luck() {
    for text in
        [include_str!("../../../scenarios/judge/crash.yaml"), include_str!("../../../scenarios/judge/truncation.yaml")]
    {
        let mut scenario = scenario::read(text, &|_| Err(String::new())).unwrap();
        // What comes after the fault is not what is asked here.
        scenario.duration = std::time::Duration::from_secs(125);
        let policies = ["lazaret", "nginx_3", "envoy_consecutive_5"];
        let policies = policies.map(|name| Policy::find(name).unwrap()).to_vec();
        let comparison = Plan::new(scenario, policies, 1, 3).run_all().unwrap();
        for row in comparison.rows.iter().filter(|row| !row.policy.is_oracle()) {
            let above = row.failures_above;
            assert!(above.mean + above.half >= -1.0, "{} {}: {above:?}", comparison.title, row.policy.name);
        }
    }
}
