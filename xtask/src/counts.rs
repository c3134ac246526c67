//! Reads how many tests passed and failed out of what the test runners print.

/// Tests of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// From `test result: ok. 20 passed; 0 failed; ...` lines, one per test program.
pub(crate) fn of_cargo_test(output: &str) -> Counts {
    let mut counts = Counts::default();
    for line in output.lines().filter_map(|line| line.trim().strip_prefix("test result:")) {
        counts.add(Counts { passed: number_before(line, "passed"), failed: number_before(line, "failed") });
    }
    counts
}

/// From `Summary [ 1.2s] 123 tests run: 121 passed (1 slow), 2 failed, 0 skipped`.
pub(crate) fn of_nextest(output: &str) -> Counts {
    let Some(line) = output.lines().rfind(|line| line.trim_start().starts_with("Summary [")) else {
        return Counts::default();
    };
    let line = line.split_once("run:").map_or(line, |(_, counts)| counts);
    let failed = number_before(line, "failed") + number_before(line, "timed out") + number_before(line, "exec failed");
    Counts { passed: number_before(line, "passed"), failed }
}

fn number_before(line: &str, word: &str) -> u64 {
    let parts = line.split([',', ';', '.']).map(str::trim);
    let of_word = |part: &str| {
        let (number, rest) = part.split_once(' ')?;
        (rest == word || rest.strip_prefix(word).is_some_and(|more| more.starts_with(" (")))
            .then(|| number.parse::<u64>().ok())?
    };
    parts.filter_map(of_word).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_both_runners() {
        let cargo = "test result: ok. 20 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.04s\n\
                     test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0s";
        assert_eq!(of_cargo_test(cargo), Counts { passed: 21, failed: 2 });
        let nextest = "     Summary [   1.250s] 123 tests run: 121 passed (1 slow), 2 failed, 0 skipped\n";
        assert_eq!(of_nextest(nextest), Counts { passed: 121, failed: 2 });
        let other = "     Summary [   1.250s] 5/9 tests run: 3 passed, 1 failed, 1 timed out, 0 skipped\n";
        assert_eq!(of_nextest(other), Counts { passed: 3, failed: 2 });
        assert_eq!(of_nextest("error: could not compile"), Counts::default());
    }
}
