//! `twins [SCENARIO.yaml...]`: runs the scripts for real and in the lab and says whether the lab predicted what came.
//!
//! Exit code 1: a promise was broken. docs/twins.md has the method and the figures.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use lab::chance::Chance;
use lab::scenario::Scenario;
use twins::contestant::Contestant;
use twins::document::{self, Chapter};
use twins::predicted::{middle, runs_of};
use twins::report::{Row, settings, table};
use twins::seen::{Seen, Sight};

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool> {
    let Some(options) = Options::parse(std::env::args().skip(1))? else {
        println!("{USAGE}");
        return Ok(true);
    };
    Contestant::named(&options.only)?;
    // Configurations and logs; always the same place, so that nothing piles up.
    let folder = std::env::temp_dir().join("lazaret-twins");
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let mut all = Vec::new();
    let scripts = if options.is_kept_only { Vec::new() } else { options.scripts()? };
    for path in &scripts {
        let scenario = twins::read(path)?;
        let script = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let contestants = Contestant::of(&script, &options.only)?;
        let seen = if options.is_dry {
            vec![Seen::default(); contestants.len()]
        } else {
            twins::real::run(&scenario, &contestants, SEED, &folder).with_context(|| script.clone())?
        };
        let (mut rows, mut unseen) = (Vec::new(), String::new());
        for (contestant, seen) in contestants.iter().zip(&seen) {
            let sight = if options.is_dry { Sight::Whole } else { seen.sight() };
            let runs = runs_of(&scenario, &contestant.policy, SEED, options.runs, sight)?;
            let predicted = middle(&runs);
            if sight == Sight::NoRefusals {
                BLIND.clone_into(&mut unseen);
            }
            let measured = if options.is_dry { predicted.clone() } else { seen.figures(&scenario) };
            if !seen.lateness().is_believable() {
                println!("not to be believed: {script} {}: {}", contestant.name, seen.lateness());
            }
            if options.has_lanes {
                lanes(&scenario, contestant, seen)?;
            }
            let (script, contestant) = (script.clone(), contestant.name.to_owned());
            rows.push(Row { script, contestant, predicted, runs, measured });
        }
        let settings = settings(&scenario, &contestants);
        println!("### {script}: {}\n\n{}\n{settings}", scenario.title, table(&rows));
        all.push(Chapter { script, title: scenario.title.clone(), rows, settings, unseen });
    }
    let broken: Vec<String> = all.iter().flat_map(|chapter| chapter.rows.iter().flat_map(Row::broken)).collect();
    if all.iter().any(|chapter| !chapter.unseen.is_empty()) {
        println!("{BLIND}");
    }
    for line in &broken {
        println!("broken: {line}");
    }
    if let Some(path) = &options.keep {
        all = document::keep(path, all)?;
    }
    if let Some(path) = &options.document {
        document::write(path, &all)?;
    }
    Ok(broken.is_empty())
}

/// Attempts in each second at each destination that a fault befalls: one run of the lab, and what was measured.
fn lanes(scenario: &Scenario, contestant: &Contestant, seen: &Seen) -> Result<()> {
    for turns in 1..=RUNS {
        let trace = lab::trace(scenario, &contestant.policy, Chance::with_turns(SEED, turns))?;
        let figures = Seen::from(trace).figures(scenario);
        let absences = figures.absences.iter().map(|one| format!("out {:?} back {:?}", one.out, one.back));
        let absences: Vec<String> = absences.collect();
        println!(
            "{} in run {turns} of the lab: {} failures, {}",
            contestant.name,
            figures.failures,
            absences.join(", ")
        );
    }
    let trace = lab::trace(scenario, &contestant.policy, Chance::with_turns(SEED, 1))?;
    let lab = Seen::from(trace);
    let mut sick: Vec<usize> = scenario.faults.iter().flat_map(|fault| fault.on.iter().copied()).collect();
    sick.sort_unstable();
    sick.dedup();
    for place in sick {
        for (world, seen) in [("lab", &lab), ("real", seen)] {
            let lane: Vec<String> = seen.lane(place, scenario).iter().map(u32::to_string).collect();
            println!("{} {place} {world}: {}", contestant.name, lane.join(" "));
        }
    }
    Ok(())
}

struct Options {
    named: Vec<PathBuf>,
    document: Option<PathBuf>,
    keep: Option<PathBuf>,
    only: Vec<String>,
    runs: u64,
    is_dry: bool,
    is_kept_only: bool,
    has_lanes: bool,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Self>> {
        let mut options = Self {
            named: Vec::new(),
            document: None,
            keep: None,
            only: Vec::new(),
            runs: RUNS,
            is_dry: false,
            is_kept_only: false,
            has_lanes: false,
        };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--help" | "-h" => return Ok(None),
                "--only" => {
                    let names = words.next().context("--only: names of contestants with commas")?;
                    options.only = names.split(',').map(str::to_owned).collect();
                }
                "--document" => options.document = Some(words.next().context("--document: a page")?.into()),
                "--keep" => options.keep = Some(words.next().context("--keep: a file")?.into()),
                "--runs" => {
                    options.runs = words.next().and_then(|word| word.parse().ok()).context("--runs: a number")?;
                }
                "--lanes" => options.has_lanes = true,
                "--kept-only" => options.is_kept_only = true,
                "--lab-only" => options.is_dry = true,
                _ if word.starts_with('-') => bail!("{word} is unknown\n{USAGE}"),
                _ => options.named.push(PathBuf::from(word)),
            }
        }
        Ok(Some(options))
    }

    /// Those that were named, or all of them.
    fn scripts(&self) -> Result<Vec<PathBuf>> {
        if !self.named.is_empty() {
            return Ok(self.named.clone());
        }
        let entries = std::fs::read_dir(SCRIPTS).context(SCRIPTS)?;
        let mut all = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        all.retain(|path| path.extension().is_some_and(|ending| ending == "yaml"));
        all.sort();
        ensure!(!all.is_empty(), "{SCRIPTS} is empty");
        Ok(all)
    }
}

const USAGE: &str =
    "usage: twins [SCENARIO.yaml...] [--only lazaret,nginx,...] [--document docs/twins.md] [--keep FILE.json [--kept-only]] [--lab-only] [--runs 20] [--lanes]
without scenarios: all of scenarios/twins";
const BLIND: &str =
    "NOT TAKEN: when dead processes were given up. Refused connections are seen by root or with CAP_NET_RAW alone";
const SCRIPTS: &str = "scenarios/twins";
const SEED: u64 = 1;
const RUNS: u64 = 20;
