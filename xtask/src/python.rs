//! A folder with the Python packages that tests use: `target/python`, made anew when `tests/python/*.txt` change. What is
//! no wheel is fetched as an archive, for the test that reads it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::run::run;

const REQUIREMENTS: &str = "tests/python/requirements.txt";
const ARCHIVES: &str = "tests/python/archives.txt";

/// Whether the Python that there is can make such a folder (Debian has that in a package of its own).
pub(crate) fn can_prepare() -> bool {
    Command::new("python3").args(["-c", "import venv, ensurepip"]).output().is_ok_and(|ran| ran.status.success())
}

/// Makes the folder, unless it is there with what is wanted. False: it could not be made; its tests skip then.
pub(crate) fn prepare() -> Result<bool> {
    let folder = folder()?;
    let wanted =
        fs::read_to_string(REQUIREMENTS).context(REQUIREMENTS)? + &fs::read_to_string(ARCHIVES).context(ARCHIVES)?;
    let mark = folder.join("requirements.txt");
    if fs::read_to_string(&mark).is_ok_and(|had| had == wanted) {
        return Ok(true);
    }
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv", "--clear"]).arg(&folder);
    let mut install = Command::new(folder.join("bin/python"));
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]);
    install.args(["--requirement", REQUIREMENTS]);
    let mut fetch = Command::new(folder.join("bin/python"));
    fetch.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-binary",
        ":all:",
    ]);
    fetch.args(["--requirement", ARCHIVES, "--dest"]).arg(folder.join("archives"));
    for command in [venv, install, fetch] {
        if !run(command)?.is_ok {
            return Ok(false);
        }
    }
    // Written last: a folder without it is made again.
    fs::write(mark, wanted)?;
    Ok(true)
}

/// Beside the programs: `target/debug/xtask` makes it `target/python`, where tests look for it, too.
fn folder() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    Ok(own.ancestors().nth(2).context("xtask lies in target/debug")?.join("python"))
}
