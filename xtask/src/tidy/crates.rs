//! What each crate carries: the bans of a core, the workspace's lints, a line of purpose.

use std::path::Path;

use anyhow::{Context, Result};

use super::rows::CORES;

pub(crate) fn findings() -> Result<Vec<String>> {
    let mut findings = Vec::new();
    let bans = include_str!("core_clippy.toml");
    for name in CORES.iter().chain(&["exchange", "bridge", "recorder", "lab"]) {
        let path = format!("crates/{name}/clippy.toml");
        match std::fs::read_to_string(&path) {
            Ok(text) if text == bans => {}
            Ok(_) => findings
                .push(format!("{path}: differs from xtask/src/tidy/core_clippy.toml; all cores have the same bans")),
            Err(_) => findings.push(format!("{path}: missing; copy xtask/src/tidy/core_clippy.toml")),
        }
    }
    let manifest = std::fs::read_to_string("Cargo.toml").context("Cargo.toml")?;
    for member in members(&manifest) {
        let Member { path, purpose } = member;
        if purpose.is_none() {
            findings.push(format!("Cargo.toml: {path} has no purpose behind it"));
        }
        let own = std::fs::read_to_string(Path::new(path).join("Cargo.toml")).with_context(|| path.to_owned())?;
        // The end-to-end tests have a shorter list of their own.
        if !own.contains("[lints]\nworkspace = true") && !own.contains("unsafe_code = \"forbid\"") {
            findings.push(format!("{path}/Cargo.toml: neither takes the workspace's lints nor forbids unsafe code"));
        }
    }
    Ok(findings)
}

struct Member<'a> {
    path: &'a str,
    purpose: Option<&'a str>,
}

fn members(manifest: &str) -> impl Iterator<Item = Member<'_>> {
    let list = manifest.split_once("\nmembers = [").map_or("", |(_, rest)| rest);
    let list = list.split_once("\n]").map_or("", |(list, _)| list);
    list.lines().filter_map(|line| {
        let (path, rest) = line.trim().strip_prefix('"')?.split_once('"')?;
        let purpose = rest.split_once('#').map(|(_, purpose)| purpose.trim()).filter(|purpose| !purpose.is_empty());
        Some(Member { path, purpose })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_without_a_purpose_is_seen() {
        let manifest = "[workspace]\nmembers = [\n    # row\n    \"a\", # does a\n    \"b\",\n]\n";
        let found: Vec<_> = members(manifest).map(|member| (member.path, member.purpose)).collect();
        assert_eq!(found, [("a", Some("does a")), ("b", None)]);
    }
}
