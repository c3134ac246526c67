//! What the native default set promises, held against scenarios, mostly those that judge it: few seeds, no interval, hard limits.

use lab::meter::{Figures, Film};
use lab::policy::Policy;
use lab::scenario::Scenario;

use crate::support::read;

macro_rules! judge {
    ($name:literal) => {
        include_str!(concat!("../../../scenarios/judge/", $name, ".yaml"))
    };
}

/// A run of the default set with retries and one without, of one seed each.
fn runs(text: &str) -> [(String, Figures, Film); 2] {
    let with = read(text);
    let without = Scenario { attempts: 1, ..with.clone() };
    [(with, 1), (without, 2)].map(|(scenario, seed)| {
        let (figures, film) = lab::run(&scenario, &Policy::find("lazaret").unwrap(), seed).unwrap();
        (format!("{}, {} attempts, seed {seed}: {figures:?}", scenario.title, scenario.attempts), figures, film)
    })
}

#[test]
fn clients_that_ask_for_what_fails_everywhere_cost_no_destination_a_second() {
    let plain_500 = judge!("client_errors_30").replace("status: 502", "status: 500");
    for text in [judge!("client_errors_10"), judge!("client_errors_30"), judge!("client_errors_60"), &plain_500] {
        // A minute of it says as much as two.
        for (about, figures, _) in runs(&text.replace("duration: 200s", "duration: 100s")) {
            assert_eq!((figures.lost, figures.ejections), (0.0, 0.0), "{about}");
        }
    }
}

#[test]
fn what_is_down_is_out_within_two_seconds() {
    // A host that vanishes, without the brownout of the other one, which is no death.
    let vanished: Vec<&str> = judge!("one_of_two").lines().filter(|line| !line.contains("kind: errors")).collect();
    let vanished = vanished.join("\n");
    for text in [judge!("crash"), judge!("refuse"), judge!("hang"), judge!("closed_loop"), &vanished] {
        for (about, figures, _) in runs(text) {
            assert_eq!(figures.undetected, 0.0, "{about}");
            assert!(figures.detection.unwrap() <= 2.0, "{about}");
        }
    }
}

#[test]
fn what_fails_behind_all_of_them_ejects_nobody_and_is_over_when_it_ends() {
    for share in ["0.2", "0.4", "0.6"] {
        let text = judge!("shared_dependency").replace("share: 0.4", &format!("share: {share}"));
        for (about, figures, film) in runs(&text) {
            assert_eq!((figures.lost, figures.ejections), (0.0, 0.0), "{about}");
            for (start, end, most) in [(60, 90, 1.2), (140, 170, 1.08)] {
                let sum = |counts: &[u32]| f64::from(counts[start..end].iter().sum::<u32>());
                let load = sum(&film.attempts) / sum(&film.requests);
                // What traffic pays for (docs/retry.md).
                assert!(load <= most, "{load} from {start} s on; {about}");
                let after = &film.failures[end + 2..end + 40];
                assert_eq!(after.iter().sum::<u32>(), 0, "{about}");
            }
        }
    }
}

#[test]
fn who_is_well_on_average_keeps_its_place() {
    for text in [judge!("background"), judge!("gc_pause"), judge!("overload"), judge!("burst")] {
        for (about, figures, _) in runs(text) {
            assert!(figures.lost_share <= 0.01, "{about}");
        }
    }
}

#[test]
fn long_polls_alone_cost_no_destination_a_second() {
    let text = include_str!("../../../scenarios/tune/long_polls.yaml");
    for (about, figures, _) in runs(text) {
        assert_eq!((figures.lost, figures.ejections), (0.0, 0.0), "{about}");
    }
    let unprobed = text.replace("checks: {interval: 5s, timeout: 2s}\n", "");
    for (about, figures, _) in runs(&unprobed) {
        assert_eq!((figures.lost, figures.ejections), (0.0, 0.0), "without probes: {about}");
    }
}
