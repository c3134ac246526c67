//! Who is a model says so wherever a reader meets its name.

use lab::compare::Plan;
use lab::policy::Policy;
use lab::report::{html, json, picture, text};
use lab::verdict::verdicts;

use crate::support::{read, three};

#[test]
fn a_model_is_called_so_in_every_report() {
    let faults = "[{kind: errors, on: [b], at: 10s, lasts: 20s, share: 1, status: 503}]";
    let policies = ["lazaret", "yarp", "envoy", "haproxy"].map(|name| Policy::find(name).unwrap());
    let plan = Plan::new(read(&three(faults)), policies.to_vec(), 1, 1);
    let comparison = plan.run_all().unwrap();
    for page in [text::render(&comparison), html::render(&plan, &comparison), picture::render(&plan, &comparison)] {
        for model in ["model of yarp", "model of envoy"] {
            assert!(page.contains(model), "{model}: {page}");
        }
        for itself in ["model of lazaret", "model of haproxy"] {
            assert!(!page.contains(itself), "{itself}: {page}");
        }
    }
    assert_eq!(json::render(&comparison).matches("\"standing\": \"model\"").count(), 2);
    let names = ["model of yarp", "model of envoy", "haproxy"];
    for verdict in verdicts(&[comparison], "lazaret") {
        let named = verdict.best_of.iter().chain(&verdict.beaten_by);
        assert!(named.into_iter().all(|who| names.contains(&who.as_str())), "{verdict:?}");
    }
}
