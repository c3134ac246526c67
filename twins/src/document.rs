//! The figures as a part of a page of the docs, and the drawing beside it.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::promise::{Kept, Promise};
use crate::report::{Row, table};
use crate::scatter::scatter;

/// What came of one script.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Chapter {
    /// Its file without the ending.
    pub script: String,
    /// Its title.
    pub title: String,
    /// One per contestant.
    pub rows: Vec<Row>,
    /// Who was twinned with which settings.
    #[serde(default)]
    pub settings: String,
    /// What nobody could see of it; empty: nothing.
    #[serde(default)]
    pub unseen: String,
}

/// Puts the figures between the page's marks, and the drawing into the file of the same name that ends in `.svg`.
pub fn write(path: &Path, chapters: &[Chapter]) -> Result<()> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| name.to_string())?;
    let (before, rest) = text.split_once(BEGIN).with_context(|| format!("{name}: {BEGIN} is missing"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("{name}: {END} is missing"))?;
    std::fs::write(path, format!("{before}{BEGIN}\n{}{END}{after}", figures(chapters)))
        .with_context(|| name.to_string())?;
    let rows: Vec<Row> = chapters.iter().flat_map(|chapter| chapter.rows.iter().cloned()).collect();
    let drawing = path.with_extension("svg");
    std::fs::write(&drawing, scatter(&rows)).with_context(|| drawing.display().to_string())
}

/// Takes the place of what a file keeps of the same scripts; answers all that it keeps now, in the order of names.
pub fn keep(path: &Path, new: Vec<Chapter>) -> Result<Vec<Chapter>> {
    let name = path.display();
    let mut all: Vec<Chapter> = match std::fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text).with_context(|| name.to_string())?,
        Err(_) => Vec::new(),
    };
    all.retain(|old| new.iter().all(|chapter| chapter.script != old.script));
    all.extend(new);
    all.sort_by(|a, b| a.script.cmp(&b.script));
    std::fs::write(path, serde_json::to_string(&all)?).with_context(|| name.to_string())?;
    Ok(all)
}

fn figures(chapters: &[Chapter]) -> String {
    let promises: Vec<Promise> = chapters.iter().flat_map(|chapter| &chapter.rows).flat_map(Row::promises).collect();
    let count = |kept| promises.iter().filter(|promise| promise.kept() == kept).count();
    let (by_the_middle, by_one_run) = (count(Kept::ByTheMiddle), count(Kept::ByOneRun));
    let mut text = format!(
        "Each cell: predicted / measured; `!`: a broken promise. {} of {} promises were kept, {by_one_run} of them by single runs of \
         the lab and not by their middle (`~`).\n",
        by_the_middle + by_one_run,
        promises.len()
    );
    for chapter in chapters {
        // Writing into a String does not fail.
        let _ = write!(text, "\n### {}: {}\n\n{}", chapter.script, chapter.title, table(&chapter.rows));
        if !chapter.unseen.is_empty() {
            let _ = write!(text, "\n{}.\n", chapter.unseen);
        }
        if !chapter.settings.is_empty() {
            let _ = write!(text, "\n<details><summary>Settings</summary>\n\n{}\n</details>\n", chapter.settings);
        }
    }
    text
}

const BEGIN: &str = "<!-- twins:begin -->";
const END: &str = "<!-- twins:end -->";
