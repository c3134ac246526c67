//! `lazaret-rhi check`: what a file comes to.

use std::fmt::Write as _;
use std::path::Path;

use config::LoadedRhi;
use model::vip::{Condition, OnExit, RhiConfig, Unreachable};

use crate::cli::Format;
use crate::file::NoConfig;
use crate::{Exit, complain, file, places, print};

/// Checks a file and prints it with every default filled in.
pub(crate) fn check(path: &Path, format: Format) -> Exit {
    let checked = file::load(path).and_then(|loaded| {
        places::check(&loaded).map_err(NoConfig::Refused)?;
        Ok(loaded)
    });
    match checked {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                complain(warning);
            }
            if let Some(warning) = places::warnings(&loaded) {
                complain(format_args!("warning: {warning}"));
            }
            let LoadedRhi { config, warnings, .. } = loaded;
            match format {
                Format::Text => print(&shown(&config)),
                Format::Json => print(&serde_json::json!({"config": config, "warnings": warnings}).to_string()),
            }
            Exit::Done
        }
        Err(no_config) => {
            match (&no_config, format) {
                (NoConfig::Refused(report), Format::Json) => {
                    print(&serde_json::json!({"errors": report.diagnostics}).to_string());
                }
                (NoConfig::Refused(_) | NoConfig::Unreadable(_), Format::Text | Format::Json) => {
                    complain(no_config.drawn());
                }
            }
            Exit::ConfigRefused
        }
    }
}

/// The configuration as a file that means the same, and what it comes to in time.
fn shown(config: &RhiConfig) -> String {
    let mut out = String::new();
    let path = |path: &Option<std::path::PathBuf>| {
        path.as_ref().map_or_else(|| "null # standard error".to_owned(), |path| path.display().to_string())
    };
    let unreachable = match config.failure_policy.control_api_unreachable {
        Unreachable::Withdraw => "withdraw",
        Unreachable::Announce => "announce",
    };
    let on_exit = match config.on_exit {
        OnExit::Withdraw => "withdraw",
        OnExit::Keep => "keep",
    };
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "apisix_poll_interval: {:?}\napisix_control_url: {}\napisix_timeout: {:?}\ninterface: {}\nmain_log: {}\n\
         error_log: {}\nfailure_policy:\n  control_api_unreachable: {unreachable}\n  max_failed_polls: {}\n\
         healthy_states: [{}]\non_exit: {on_exit}\nstatus_socket: {}\nvips:\n",
        config.poll_interval,
        config.control_url,
        config.timeout,
        config.interface,
        path(&config.main_log),
        path(&config.error_log),
        config.failure_policy.max_failed_polls,
        config.healthy_states.join(", "),
        config.status_socket.display(),
    );
    for vip in &config.vips {
        let condition = match vip.condition {
            Condition::All => "all",
            Condition::Any => "any",
        };
        let _ = write!(
            out,
            "  - address: {}\n    description: {:?}\n    condition: {condition}\n    upstreams:\n",
            vip.address, vip.description
        );
        for upstream in &vip.upstreams {
            let _ = writeln!(
                out,
                "      - {upstream} # GET {}/v1/healthcheck/{}/{}",
                config.control_url, upstream.kind, upstream.id
            );
        }
    }
    let cycle = config.poll_interval.max(config.timeout);
    let _ = writeln!(
        out,
        "# a sick upstream is seen within {:?} of the proxy's verdict, a dead control API acts after {:?} at most",
        config.poll_interval,
        cycle.saturating_mul(config.failure_policy.max_failed_polls).saturating_add(config.poll_interval),
    );
    out
}
