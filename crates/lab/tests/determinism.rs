//! The same scenario and seeds give the same bytes, in whatever order the runs are done.

use lab::compare::{Comparison, Plan};
use lab::policy::Policy;
use lab::report::{html, json, text};

use crate::support::{read, three};

fn plan(first: u64) -> Plan {
    let faults = "[{kind: crash, on: [b], at: 20s, lasts: 10s}, {kind: errors, on: [c], at: 30s, lasts: 20s, share: 0.4, status: 503}]";
    let policies = ["lazaret", "nginx", "haproxy"].map(|name| Policy::find(name).unwrap());
    Plan::new(read(&three(faults)), policies.to_vec(), first, 3)
}

fn pages(plan: &Plan, comparison: &Comparison) -> [String; 3] {
    [text::render(comparison), json::render(comparison), html::render(plan, comparison)]
}

#[test]
fn equal_seeds_are_equal_bytes_and_other_seeds_are_not() {
    let plan_of_one = plan(1);
    let in_order = pages(&plan_of_one, &plan_of_one.run_all().unwrap());
    let mut jobs = plan_of_one.jobs();
    jobs.reverse();
    let done = jobs.into_iter().map(|job| plan_of_one.run(job).unwrap()).collect();
    assert_eq!(in_order, pages(&plan_of_one, &Comparison::of(&plan_of_one, done)));
    let other = plan(100);
    assert_ne!(in_order[1], pages(&other, &other.run_all().unwrap())[1]);
}

#[test]
fn the_page_needs_nothing_beside_itself() {
    let plan = plan(1);
    let page = html::render(&plan, &plan.run_all().unwrap());
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    for outside in ["http://", "https://", "<script", "<link", "<img", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    for name in ["lazaret", "nginx", "haproxy", "eject", "keep"] {
        assert!(page.contains(&format!("<section id=\"{name}\">")), "{name}");
    }
}
