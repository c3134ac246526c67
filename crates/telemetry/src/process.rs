//! The process's own figures, read from /proc/self at each scrape.
//!
//! A figure that cannot be read is left out rather than reported as zero.

use std::fs;

/// Clock ticks per second in /proc; Linux shows 100 to every program, whatever the kernel's own rate.
const TICKS_PER_SECOND: f64 = 100.0;

/// What /proc/self says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessFigures {
    /// Seconds on the CPU, user and system.
    pub cpu_seconds: Option<f64>,
    /// Seconds since 1970.
    pub start_seconds: Option<f64>,
    /// Bytes.
    pub resident_bytes: Option<u64>,
    /// Bytes.
    pub virtual_bytes: Option<u64>,
    /// Open file descriptors.
    pub open_fds: Option<u64>,
    /// Their soft limit; `None` also when there is none.
    pub max_fds: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
}

impl ProcessFigures {
    /// Reads them now.
    pub fn read() -> Self {
        let text = |path| fs::read_to_string(path).unwrap_or_default();
        let fds = fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count() as u64);
        let parsed = Self::parse(
            &text("/proc/self/stat"),
            &text("/proc/self/status"),
            &text("/proc/self/limits"),
            &text("/proc/stat"),
        );
        // Reading the folder takes a descriptor of its own.
        Self { open_fds: fds.map(|count| count.saturating_sub(1)), ..parsed }
    }

    fn parse(stat: &str, status: &str, limits: &str, boot: &str) -> Self {
        // The second field is the program's name in parentheses and may hold blanks and parentheses itself.
        let fields: Vec<&str> =
            stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
        // proc(5): utime is field 14, stime 15, starttime 22; `fields` begins with field 3.
        let ticks = |field: usize| fields.get(field - 3).and_then(|text| text.parse::<f64>().ok());
        let boot = boot.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse::<f64>().ok());
        let line = |key: &str| {
            status.lines().find_map(|line| line.strip_prefix(key)?.split_whitespace().next()?.parse::<u64>().ok())
        };
        Self {
            cpu_seconds: ticks(14).zip(ticks(15)).map(|(user, system)| (user + system) / TICKS_PER_SECOND),
            start_seconds: boot.zip(ticks(22)).map(|(boot, start)| boot + start / TICKS_PER_SECOND),
            resident_bytes: line("VmRSS:").map(|kib| kib * 1024),
            virtual_bytes: line("VmSize:").map(|kib| kib * 1024),
            open_fds: None,
            max_fds: limits
                .lines()
                .find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next()?.parse().ok()),
            threads: line("Threads:"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_in_the_kernels_texts() {
        let stat =
            "7 (a b) c) S 1 7 7 0 -1 4194304 100 0 0 0 150 50 0 0 20 0 4 0 1000 1000000 200 18446744073709551615";
        let status = "Name:\ta\nVmSize:\t    2000 kB\nVmRSS:\t     10 kB\nThreads:\t4\n";
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max open files            1024                 4096                 files\n";
        let figures = ProcessFigures::parse(stat, status, limits, "cpu 1 2\nbtime 1700000000\n");
        assert_eq!(figures.cpu_seconds, Some(2.0));
        assert_eq!(figures.start_seconds, Some(1_700_000_010.0));
        assert_eq!((figures.resident_bytes, figures.virtual_bytes), (Some(10_240), Some(2_048_000)));
        assert_eq!((figures.max_fds, figures.threads), (Some(1024), Some(4)));
        assert_eq!(ProcessFigures::parse("", "", "", ""), ProcessFigures::default());
    }

    #[test]
    fn the_running_process_has_figures() {
        let figures = ProcessFigures::read();
        assert!(figures.resident_bytes > Some(0) && figures.open_fds > Some(0) && figures.threads > Some(0));
    }
}
