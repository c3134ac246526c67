//! To which stage of a request an instruction belongs, by the source file that it was compiled from.

/// A stage, in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Parse,
    Write,
    Bodies,
    Route,
    Exchange,
    Balance,
    Board,
    Metrics,
    Pool,
    Drive,
    Tokio,
    Libc,
    Rest,
}

impl Stage {
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Parse => "parse both heads",
            Self::Write => "write both heads",
            Self::Bodies => "follow both bodies",
            Self::Route => "find the route",
            Self::Exchange => "decide (`exchange`, `retry`, `model`)",
            Self::Balance => "pick a destination",
            Self::Board => "snapshot and counts (`board`)",
            Self::Metrics => "metrics",
            Self::Pool => "pool of connections (`upstream`, `io`)",
            Self::Drive => "drive the exchange, timers (`proxy`)",
            Self::Tokio => "tokio and mio",
            Self::Libc => "libc: system calls' wrappers, copies, clock",
            Self::Rest => "rest",
        }
    }
}

/// `home` is where the function was written, `file` where the code was that the compiler put into it. The standard
/// library's code counts as its caller's.
pub(crate) fn of(object: &str, function: &str, home: &str, file: &str) -> Stage {
    if ["libc.so", "libc-", "ld-linux", "libm."].iter().any(|name| object.contains(name)) {
        return Stage::Libc;
    }
    // Where all is of the standard library, the function's name may still tell for what it was made.
    let found = [file, home].into_iter().find_map(by_file);
    found.or_else(|| by_name(function)).unwrap_or(Stage::Rest)
}

fn by_file(path: &str) -> Option<Stage> {
    if let Some((_, inside)) = path.rsplit_once("/crates/") {
        return Some(by_crate(inside));
    }
    let is_runtime = ["/tokio-", "/mio-", "/futures-"].iter().any(|name| path.contains(name));
    is_runtime.then_some(Stage::Tokio)
}

fn by_crate(path: &str) -> Stage {
    match path.split('/').next().unwrap_or_default() {
        "http1" if path.contains("/src/forward") => Stage::Write,
        "http1" if path.ends_with("body.rs") || path.ends_with("chunked.rs") => Stage::Bodies,
        "http1" => Stage::Parse,
        "route" => Stage::Route,
        "exchange" | "retry" | "model" => Stage::Exchange,
        "balance" => Stage::Balance,
        "board" | "bridge" => Stage::Board,
        "telemetry" => Stage::Metrics,
        "upstream" | "io" => Stage::Pool,
        "proxy" => Stage::Drive,
        _ => Stage::Rest,
    }
}

fn by_name(function: &str) -> Option<Stage> {
    let starts = [("http1::forward", Stage::Write), ("http1::", Stage::Parse), ("route::", Stage::Route)];
    let more = [("proxy::", Stage::Drive), ("tokio::", Stage::Tokio), ("mio::", Stage::Tokio)];
    let found = starts.iter().chain(&more).find(|(start, _)| function.contains(start));
    found.map(|(_, stage)| *stage)
}
