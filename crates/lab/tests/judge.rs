//! The scenarios of both sets can be read, and the first of them runs.

use lab::policy::Policy;
use lab::scenario;

#[test]
fn every_scenario_of_both_sets_is_read() {
    for (set, head, least) in [("judge", "# Asks: ", 20), ("tune", "# Tunes ", 10)] {
        let folder = format!("{}/../../scenarios/{set}", env!("CARGO_MANIFEST_DIR"));
        let mut n = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let read = scenario::read(&text, &|name| Err(format!("no {name}")));
            assert!(read.is_ok(), "{}: {}", path.display(), read.unwrap_err());
            assert!(text.starts_with(head), "{}", path.display());
            n += 1;
        }
        assert!(n >= least, "{set}: {n}");
    }
}

#[test]
fn every_known_policy_sees_a_crash_through() {
    let text = include_str!("../../../scenarios/judge/crash.yaml").replace("240s", "150s");
    let scenario = scenario::read(&text, &|_| Err(String::new())).unwrap();
    for policy in Policy::known() {
        let (figures, _) = lab::run(&scenario, &policy, 1).unwrap();
        assert!(figures.requests > 6_000, "{}", policy.name);
        // Those that were running at the dead one, and no more.
        assert!(figures.failures < 10, "{}: {figures:?}", policy.name);
        assert!(figures.extra_load < 0.3, "{}: {figures:?}", policy.name);
        if policy.mind != lab::policy::Mind::Keep && policy.name != "envoy" {
            assert!(figures.detection.is_some(), "{}: {figures:?}", policy.name);
        }
    }
}
