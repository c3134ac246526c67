//! Who gets the repeats of requests that fail wherever they go is not blamed for them.

use lab::meter::{Figures, Film};
use lab::policy::Policy;

use crate::support::read;

const UNEVEN: &str = include_str!("../../../scenarios/tune/uneven.yaml");

fn run(text: &str, seed: u64) -> (Figures, Film) {
    lab::run(&read(text), &Policy::find("lazaret").unwrap(), seed).unwrap()
}

/// A minute in which such a share of the requests fails wherever it goes; what else happens follows.
fn a_minute(share: f64, more: &str) -> String {
    let (head, _) = UNEVEN.split_once("faults:").unwrap();
    let head = head.replace("duration: 260s", "duration: 90s");
    format!("{head}faults:\n  - {{kind: client_errors, at: 25s, lasts: 60s, share: {share}, status: 502}}\n{more}")
}

#[test]
fn a_light_destination_loses_nothing_to_requests_that_fail_wherever_they_go() {
    for share in [0.1, 0.2, 0.3, 0.4, 0.5, 0.6] {
        let (figures, _) = run(&a_minute(share, ""), 3);
        assert_eq!((figures.lost, figures.ejections), (0.0, 0.0), "{share}: {figures:?}");
    }
}

#[test]
fn a_light_destination_that_is_down_is_out_within_two_seconds_of_such_traffic() {
    for kind in ["crash", "refuse"] {
        for share in [0.0, 0.1, 0.3] {
            let (figures, _) =
                run(&a_minute(share, &format!("  - {{kind: {kind}, on: [b], at: 50s, lasts: 20s}}\n")), 4);
            assert_eq!(figures.undetected, 0.0, "{kind} {share}: {figures:?}");
            assert!(figures.detection.unwrap() <= 2.0, "{kind} {share}: {figures:?}");
        }
    }
}

#[test]
fn a_light_destination_whose_answers_are_bad_is_found_among_such_traffic() {
    let sick = "  - {kind: errors, on: [b], at: 45s, lasts: 30s, share: 0.9, status: 503}\n";
    for share in [0.0, 0.1, 0.2] {
        let (figures, _) = run(&a_minute(share, sick), 5);
        assert_eq!(figures.undetected, 0.0, "{share}: {figures:?}");
        assert!(figures.detection.unwrap() <= 5.0, "{share}: {figures:?}");
    }
}
