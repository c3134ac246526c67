//! Several comparisons in one table: how one policy stands against the others on three things that pull against each other:
//! failures, time added at the 99th percentile, healthy time lost.
//!
//! A difference counts when it is more than both intervals leave to luck. Who loses in all three to one and the same other
//! has lost the scenario; who is no worse than the best of them in two of three has done well.

use std::fmt::Write;

use crate::compare::{Comparison, Estimate, Row};
use crate::report::number;

/// How a policy did in one scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The scenario's title.
    pub title: String,
    /// Tries of a request.
    pub attempts: u8,
    /// Failures, added p99 (ms), healthy time lost (s).
    pub mine: [f64; 3],
    /// The best of the others in each.
    pub best: [f64; 3],
    /// Whose that is, as [`crate::policy::Policy::label`] has it.
    pub best_of: [String; 3],
    /// Where it is worse than the best.
    pub is_worse: [bool; 3],
    /// In so many it is no worse than the best.
    pub held: usize,
    /// Those that beat it in all three, called likewise.
    pub beaten_by: Vec<String>,
}

/// How the policy of this name did; scenarios in which it was not are left out.
pub fn verdicts(comparisons: &[Comparison], name: &str) -> Vec<Verdict> {
    comparisons.iter().filter_map(|comparison| verdict(comparison, name)).collect()
}

/// The verdicts as a table, with their sums.
pub fn text(verdicts: &[Verdict], name: &str) -> String {
    let width = verdicts.iter().map(|one| one.title.chars().count()).max().unwrap_or(0);
    let mut text = format!(
        "{name} against the best of the others in each: failures, added p99 ms, healthy time lost s\n\n{:<width$}  {:>9} {:>9}  {:>8} {:>8}  {:>8} {:>8}  held\n",
        "scenario", "failures", "best", "p99", "best", "lost", "best"
    );
    for one in verdicts {
        let _ = write!(text, "{:<width$}", one.title);
        for ((mine, best), wide) in one.mine.iter().zip(one.best).zip([9, 8, 8]) {
            let _ = write!(text, "  {:>wide$} {:>wide$}", number(*mine), number(best));
        }
        let beaten =
            if one.beaten_by.is_empty() { String::new() } else { format!("  beaten by {}", one.beaten_by.join(", ")) };
        let _ = writeln!(text, "  {} of 3{beaten}", one.held);
    }
    let well = verdicts.iter().filter(|one| one.held >= 2).count();
    let lost = verdicts.iter().filter(|one| !one.beaten_by.is_empty()).count();
    let n = verdicts.len();
    let _ = writeln!(
        text,
        "\nno worse than the best in two of three: {well} of {n} scenarios; beaten in all three: {lost}"
    );
    text
}

fn verdict(comparison: &Comparison, name: &str) -> Option<Verdict> {
    let me = triple(comparison.rows.iter().find(|row| row.policy.name == name)?)?;
    let others: Vec<(String, [Estimate; 3])> = (comparison.rows.iter())
        .filter(|row| !row.policy.is_oracle() && row.policy.name != name)
        .filter_map(|row| Some((row.policy.label(), triple(row)?)))
        .collect();
    let best_in = |place: usize| {
        let column = others.iter().filter_map(|(who, theirs)| Some((who.as_str(), *theirs.get(place)?)));
        column.min_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean)).or_else(|| Some((name, *me.get(place)?)))
    };
    let best: [Option<(&str, Estimate)>; 3] = [0, 1, 2].map(best_in);
    let [Some(failures), Some(p99), Some(lost)] = best else { return None };
    let best = [failures, p99, lost];
    let mut is_worse_in = [false; 3];
    for ((worse, mine), (_, least)) in is_worse_in.iter_mut().zip(me).zip(best) {
        *worse = is_worse(mine, least);
    }
    let beaten_by =
        others.iter().filter(|(_, theirs)| me.iter().zip(theirs).all(|(mine, theirs)| is_worse(*mine, *theirs)));
    Some(Verdict {
        title: comparison.title.clone(),
        attempts: comparison.attempts,
        mine: me.map(|one| one.mean),
        best: best.map(|(_, one)| one.mean),
        best_of: best.map(|(who, _)| who.to_owned()),
        is_worse: is_worse_in,
        held: is_worse_in.iter().filter(|worse| !**worse).count(),
        beaten_by: beaten_by.map(|(who, _)| who.clone()).collect(),
    })
}

fn triple(row: &Row) -> Option<[Estimate; 3]> {
    Some([row.measure("failures")?, row.measure("added_p99")?, row.measure("lost")?])
}

/// Whether the difference is more than both intervals leave to luck.
pub(crate) fn is_worse(mine: Estimate, theirs: Estimate) -> bool {
    mine.mean - theirs.mean > mine.half + theirs.half
}
