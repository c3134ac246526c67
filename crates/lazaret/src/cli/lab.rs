//! `lazaret lab`: scenarios on the production cores in virtual time.

mod replay;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ::lab::compare::{Comparison, Plan};
use ::lab::policy::{Policy, PolicyError, split};
use ::lab::scenario::{self, Scenario};
use ::lab::tune::{self, Axis};
use ::lab::verdict;

use super::client::FormatWord;
use super::exit::Exit;
use super::{complain, say};

/// What `lab` is told.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Compare policies on a scenario.
    Run(RunArguments),
    /// Try many values of a policy's numbers on several scenarios, and show those that no other beats.
    Tune(TuneArguments),
    /// Run a recording of a real process again, or ask what other policies would have done.
    Replay(replay::Arguments),
}

#[derive(clap::Args)]
struct RunArguments {
    /// Scenarios' files: see docs/lab.md. Of several a table at the end says how the first policy stands.
    #[arg(value_name = "SCENARIO", required = true)]
    scenarios: Vec<PathBuf>,
    /// Who is compared, apart from the two oracles: names, passive:NAME, native:BLOCK; with commas between.
    #[arg(long, value_name = "NAMES", default_value = "lazaret,nginx,yarp,envoy_consecutive_5,haproxy")]
    policies: String,
    /// Whether requests are repeated as the scenario says, or never, or one after the other.
    #[arg(long, value_enum, default_value_t)]
    retries: RetriesWord,
    /// Write tables of how the first policy stands between the marks of this Markdown file, and beside it the pictures that
    /// it shows: `FILE without .md/SCENARIO.svg`.
    #[arg(long, value_name = "FILE")]
    document: Option<PathBuf>,
    /// Write a page with the figures and the course of the first seed, of one scenario.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    effort: Effort,
}

#[derive(clap::Args)]
struct TuneArguments {
    /// Scenarios' files.
    #[arg(value_name = "SCENARIO", required = true)]
    scenarios: Vec<PathBuf>,
    /// What stands in the cluster's health_check beside the active check, with $NAME for each number to try.
    #[arg(long, value_name = "BLOCK")]
    template: String,
    /// Values of a number, as name=value,value.
    #[arg(long = "set", value_name = "AXIS")]
    axes: Vec<String>,
    #[command(flatten)]
    effort: Effort,
}

#[derive(clap::Args)]
struct Effort {
    /// How many seeds.
    #[arg(long, value_name = "N", default_value_t = 30)]
    seeds: u32,
    /// The first of them; the others follow.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Threads [default: one per CPU].
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// How to print it.
    #[arg(long, value_enum, default_value_t)]
    format: FormatWord,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum RetriesWord {
    #[default]
    On,
    Off,
    Both,
}

/// Why nothing was run; each kind has its own end.
enum Refused {
    /// The command line is wrong.
    Usage(String),
    /// A file is wrong.
    File(String),
    /// The rest.
    Other(String),
}

/// Runs scenarios; an unknown policy is a mistake of usage, a scenario that cannot be read is refused.
pub(super) fn run(arguments: &Arguments) -> Exit {
    let done = match &arguments.command {
        Command::Run(arguments) => compare(arguments),
        Command::Tune(arguments) => tune(arguments),
        Command::Replay(arguments) => match replay::run(arguments) {
            Ok(replay::Outcome::Same) => Ok(()),
            // It has said so itself.
            Ok(replay::Outcome::Different) => return Exit::Failed,
            Err(refused) => Err(refused),
        },
    };
    let (exit, why) = match done {
        Ok(()) => return Exit::Done,
        Err(Refused::Usage(why)) => (Exit::Usage, why),
        Err(Refused::File(why)) => (Exit::Refused, why),
        Err(Refused::Other(why)) => (Exit::Failed, why),
    };
    complain(&format!("error: {why}"));
    exit
}

fn compare(arguments: &RunArguments) -> Result<(), Refused> {
    let policies: Result<Vec<Policy>, PolicyError> = split(&arguments.policies).into_iter().map(Policy::find).collect();
    let policies = policies.map_err(|error| Refused::Usage(error.to_string()))?;
    if arguments.report.is_some() && (arguments.scenarios.len() > 1 || arguments.retries == RetriesWord::Both) {
        return Err(Refused::Usage("a page shows one scenario".into()));
    }
    let effort = &arguments.effort;
    let document = arguments.document.as_deref().map(Document::open).transpose()?;
    let mut comparisons = Vec::new();
    let turns: &[Retries] = match arguments.retries {
        RetriesWord::On => &[Retries::AsWritten],
        RetriesWord::Off => &[Retries::Never],
        RetriesWord::Both => &[Retries::AsWritten, Retries::Never],
    };
    for (path, retries) in arguments.scenarios.iter().flat_map(|path| turns.iter().map(move |turn| (path, *turn))) {
        let mut scenario = read(path)?;
        if retries == Retries::Never {
            scenario.attempts = 1;
        }
        let plan = Plan::new(scenario, policies.clone(), effort.seed, effort.seeds);
        let comparison = all(&plan, effort.jobs)?;
        if let Some(path) = &arguments.report {
            write(path, &::lab::report::html::render(&plan, &comparison))?;
        }
        if let (Some(document), Retries::AsWritten) = (&document, retries) {
            document.draw(path, &plan, &comparison)?;
        }
        match effort.format {
            FormatWord::Text => say(&format!("{}\n", ::lab::report::text::render(&comparison))),
            FormatWord::Json => say(&::lab::report::json::render(&comparison)),
        }
        comparisons.push(comparison);
    }
    if let (Some(first), FormatWord::Text, 2..) = (policies.first(), effort.format, comparisons.len()) {
        say(&verdict::text(&verdict::verdicts(&comparisons, &first.name), &first.name));
    }
    if let (Some(document), Some(first)) = (document, policies.first()) {
        let verdicts = verdict::verdicts(&comparisons, &first.name);
        document.close(&::lab::report::markdown::render(&verdicts, &first.name, effort.seeds as usize))?;
    }
    Ok(())
}

/// Which of both runs of a scenario.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Retries {
    AsWritten,
    Never,
}

/// A Markdown file that holds tables and shows pictures of the lab.
struct Document<'a> {
    path: &'a Path,
    text: String,
}

impl<'a> Document<'a> {
    /// Read before the long part, so that one without marks is refused at once.
    fn open(path: &'a Path) -> Result<Self, Refused> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| Refused::File(format!("{shown}: {error}")))?;
        match ::lab::report::markdown::splice(&text, "") {
            Some(_) => Ok(Self { path, text }),
            None => Err(Refused::File(format!("{shown}: there are no marks of the lab to write between"))),
        }
    }

    /// Draws a scenario if the document shows it.
    fn draw(&self, scenario: &Path, plan: &Plan, comparison: &Comparison) -> Result<(), Refused> {
        let (Some(folder), Some(name)) = (self.path.file_stem(), scenario.file_stem()) else { return Ok(()) };
        let place = format!("{}/{}.svg", folder.display(), name.display());
        if !self.text.contains(&format!("({place})")) {
            return Ok(());
        }
        let path = self.path.with_file_name(place);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|error| Refused::Other(format!("{}: {error}", folder.display())))?;
        }
        write(&path, &::lab::report::picture::render(plan, comparison))
    }

    fn close(self, tables: &str) -> Result<(), Refused> {
        let text = ::lab::report::markdown::splice(&self.text, tables).unwrap_or(self.text);
        write(self.path, &text)
    }
}

fn write(path: &Path, text: &str) -> Result<(), Refused> {
    std::fs::write(path, text).map_err(|error| Refused::Other(format!("{}: {error}", path.display())))
}

fn tune(arguments: &TuneArguments) -> Result<(), Refused> {
    let usage = |error: PolicyError| Refused::Usage(error.to_string());
    let axes: Result<Vec<Axis>, PolicyError> = arguments.axes.iter().map(|text| Axis::parse(text)).collect();
    let policies = tune::sweep(&arguments.template, &axes.map_err(usage)?).map_err(usage)?;
    let mut comparisons = Vec::new();
    for path in &arguments.scenarios {
        if path.components().any(|part| part.as_os_str() == "judge") {
            let why = "nothing is tuned on the scenarios that judge; take those of scenarios/tune";
            return Err(Refused::Usage(format!("{}: {why}", path.display())));
        }
        let plan = Plan::new(read(path)?, policies.clone(), arguments.effort.seed, arguments.effort.seeds);
        comparisons.push(all(&plan, arguments.effort.jobs)?);
    }
    let points = tune::points(&comparisons);
    say(&match arguments.effort.format {
        FormatWord::Text => tune::text(&points),
        FormatWord::Json => tune::json(&points),
    });
    Ok(())
}

fn read(path: &Path) -> Result<Scenario, Refused> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| Refused::File(format!("{shown}: {error}")))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let open = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| error.to_string());
    scenario::read(&text, &open).map_err(|error| Refused::File(format!("{shown}: {error}")))
}

/// All runs of a plan, on several threads; what comes out does not depend on how many.
fn all(plan: &Plan, threads: Option<NonZeroUsize>) -> Result<Comparison, Refused> {
    // A policy that the configuration refuses was named on the command line; better told before the long part.
    for policy in &plan.policies {
        policy.config(&plan.scenario).map_err(|error| Refused::Usage(error.to_string()))?;
    }
    let jobs = plan.jobs();
    let cpus = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = threads.map_or_else(cpus, NonZeroUsize::get).min(jobs.len());
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(jobs.len())));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let ended = plan.run(*job);
                    if let Ok(mut done) = done.lock() {
                        done.push(ended);
                    }
                }
            });
        }
    });
    let done = done.into_inner().map_err(|_| Refused::Other("a run broke off".into()))?;
    let done: Result<Vec<_>, PolicyError> = done.into_iter().collect();
    Ok(Comparison::of(plan, done.map_err(|error| Refused::Other(error.to_string()))?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_number_of_threads_does_not_show_in_what_is_printed() {
        let text = "version: 1\ntitle: short\nduration: 20s\n\
                    destinations: [{ids: [a, b], service: {exponential: 5ms}}]\n\
                    traffic: [{arrivals: poisson, rate: 100/s}]\n\
                    faults: [{kind: errors, on: [b], at: 5s, lasts: 10s, share: 0.3, status: 503}]\n";
        let scenario = scenario::read(text, &|_| Err(String::new())).unwrap();
        let policies: Vec<Policy> = ["lazaret", "nginx"].map(|name| Policy::find(name).unwrap()).to_vec();
        let plan = Plan::new(scenario, policies, 1, 4);
        let printed = [1, 3, 64].map(|threads| {
            let comparison = all(&plan, NonZeroUsize::new(threads)).ok();
            comparison.map(|comparison| ::lab::report::json::render(&comparison))
        });
        assert!(printed[0].is_some());
        assert_eq!(printed[0], printed[1]);
        assert_eq!(printed[0], printed[2]);
    }
}
