//! Text of the comparison: a table per script for people, and the page of the docs.

use std::fmt::Write as _;

use lab::scenario::Scenario;
use serde::{Deserialize, Serialize};

use crate::contestant::Contestant;
use crate::promise::{Kept, Of, Promise, promises};
use crate::seen::Figures;

/// One contestant in one script.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The script's file without its ending.
    pub script: String,
    /// Who.
    pub contestant: String,
    /// By the lab: the middle of its runs.
    pub predicted: Figures,
    /// By each of those runs.
    #[serde(default)]
    pub runs: Vec<Figures>,
    /// For real.
    pub measured: Figures,
}

impl Row {
    /// What was promised of it.
    pub fn promises(&self) -> Vec<Promise> {
        promises(&self.predicted, &self.runs, &self.measured)
    }

    /// The broken ones, a line each.
    pub fn broken(&self) -> Vec<String> {
        let broken = self.promises().into_iter().filter(|promise| !promise.is_kept());
        broken.map(|promise| format!("{} {}: {promise}", self.script, self.contestant)).collect()
    }
}

/// A table of one script, predicted and measured beside each other; a broken promise has an exclamation mark, one that single
/// runs of the lab alone have kept a tilde.
pub fn table(rows: &[Row]) -> String {
    let mut text = String::from("| who | requests |");
    for of in Of::ALL {
        // Writing into a String does not fail.
        let _ = write!(text, " {} |", of.as_str());
    }
    text.push_str(" attempts at the sick |\n|---|---|---|---|---|---|---|\n");
    for row in rows {
        let _ = write!(text, "| {} | {:.0} |", row.contestant, row.measured.requests);
        let promises = row.promises();
        for of in Of::ALL {
            let cells: Vec<String> = promises.iter().filter(|promise| promise.of == of).map(cell).collect();
            let _ = write!(text, " {} |", if cells.is_empty() { "-".to_owned() } else { cells.join(", ") });
        }
        let met: Vec<String> = (row.predicted.absences.iter().zip(&row.measured.absences))
            .map(|(one, other)| format!("{:.0} / {:.0}", one.met, other.met))
            .collect();
        let _ = writeln!(text, " {} |", met.join(", "));
    }
    text
}

/// Who was twinned in a scenario, and with which settings: what all have, then each one's own.
pub fn settings(scenario: &Scenario, contestants: &[Contestant]) -> String {
    let all = [("to connect", scenario.connect), ("to the response's head", scenario.response)];
    let all: Vec<String> = all.iter().map(|(what, span)| format!("{} ms {what}", span.as_millis())).collect();
    let mut text = format!("{} tries, {}.\n\n| who | settings |\n|---|---|\n", scenario.attempts, all.join(", "));
    for contestant in contestants {
        // Writing into a String does not fail.
        let _ = writeln!(text, "| {} | `{}` |", contestant.name, contestant.settings(scenario));
    }
    text
}

fn cell(promise: &Promise) -> String {
    let (predicted, measured) = (promise.of.written(promise.predicted), promise.of.written(promise.measured));
    let mark = match promise.kept() {
        Kept::ByTheMiddle => "",
        Kept::ByOneRun => " ~",
        Kept::Broken => " !",
    };
    format!("{predicted} / {measured}{mark}")
}
