//! How the program ends. docs/operations.md has the same table.

use std::process::ExitCode;

/// Every way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    Done = 0,
    Failed = 1,
    /// clap ends with it by itself, too.
    Usage = 2,
    Refused = 3,
    Unreachable = 4,
    NoneHealthy = 5,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// What the end of the help says.
pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed while running
  2  usage: the command line is wrong
  3  the configuration is refused
  4  the control API cannot be reached
  5  `status`: a cluster has no healthy destination";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_the_documentation() {
        let documented = include_str!("../../../../docs/operations.md");
        let all = [Exit::Done, Exit::Failed, Exit::Usage, Exit::Refused, Exit::Unreachable, Exit::NoneHealthy];
        assert_eq!(EXIT_CODES.lines().count(), 1 + all.len());
        for (exit, line) in all.into_iter().zip(EXIT_CODES.lines().skip(1)) {
            let (code, meaning) = line.trim_start().split_once("  ").unwrap_or_default();
            assert_eq!(code, (exit as u8).to_string());
            let row = format!("| {code} | {meaning} |");
            assert!(documented.contains(&row), "{row:?}");
        }
    }
}
