//! What callgrind wrote: instructions by function and source file (Valgrind manual, "Callgrind Format Specification").

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use super::stage::{self, Stage};

/// Sums of one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Profile {
    pub(crate) stages: BTreeMap<Stage, u64>,
    /// Calls of malloc, calloc, realloc and aligned_alloc.
    pub(crate) allocations: u64,
}

impl Profile {
    /// Reads a profile. Costs behind a `calls` line are the called function's, and counted there.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read(path).with_context(|| path.display().to_string())?;
        let text = String::from_utf8_lossy(&text);
        let (mut names, mut files, mut objects) = (Names::default(), Names::default(), Names::default());
        let (mut object, mut function, mut home, mut file, mut called) = Default::default();
        let mut is_call = false;
        let mut profile = Self::default();
        for line in text.lines() {
            match line.split_once('=') {
                Some(("ob", name)) => object = objects.of(name),
                Some(("fl", name)) => {
                    home = files.of(name);
                    file = home.clone();
                }
                Some(("fi" | "fe", name)) => file = files.of(name),
                Some(("fn", name)) => function = names.of(name),
                Some(("cfn", name)) => called = names.of(name),
                Some(("cob", name)) => drop(objects.of(name)),
                Some(("cfi" | "cfl", name)) => drop(files.of(name)),
                Some(("calls", rest)) => {
                    is_call = true;
                    if ALLOCATIONS.contains(&called.as_str()) {
                        profile.allocations += number(rest);
                    }
                }
                Some(_) => {}
                None if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) => {
                    let cost = line.split_once(' ').map_or(0, |(_, cost)| number(cost));
                    if !std::mem::take(&mut is_call) {
                        *profile.stages.entry(stage::of(&object, &function, &home, &file)).or_default() += cost;
                    }
                }
                None => {}
            }
        }
        Ok(profile)
    }
}

/// Names are written once, as `(number) name`, and then stand as `(number)`.
#[derive(Default)]
struct Names(BTreeMap<String, String>);

impl Names {
    fn of(&mut self, text: &str) -> String {
        match text.split_once(") ") {
            Some((number, name)) => {
                self.0.insert(number.trim_start_matches('(').to_owned(), name.to_owned());
                name.to_owned()
            }
            None => self.0.get(text.trim_matches(['(', ')'])).cloned().unwrap_or_default(),
        }
    }
}

/// The number at the start.
fn number(text: &str) -> u64 {
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

const ALLOCATIONS: [&str; 4] = ["malloc", "calloc", "realloc", "aligned_alloc"];
