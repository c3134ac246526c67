//! `lazaret-rhi run`: the daemon.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use config::LoadedRhi;
use model::vip::RhiConfig;
use rhi_agent::capabilities;
use rhi_agent::driver::{self, Hooks};
use rhi_agent::netlink::linux::Linux;
use rhi_agent::netlink::monitor;
use telemetry::logs::{LogError, LogOptions, Logs};
use tokio::sync::mpsc;

use crate::file::NoConfig;
use crate::{Exit, complain, file, places};

/// How long the last lines may take to reach the disk.
const FLUSH_PATIENCE: Duration = Duration::from_secs(1);

/// Runs until a planned stop.
pub(crate) fn run(path: &Path) -> Exit {
    let loaded = match file::load(path) {
        Ok(loaded) => loaded,
        Err(no_config) => {
            complain(no_config.drawn());
            return Exit::ConfigRefused;
        }
    };
    let options = LogOptions {
        main: loaded.config.main_log.clone(),
        error: loaded.config.error_log.clone(),
        ..LogOptions::default()
    };
    let logs = match telemetry::logs::start(&options) {
        Ok(logs) => logs,
        Err(LogError::Open { path, source }) => {
            complain(NoConfig::Refused(places::log_refused(&loaded, &path, &source)).drawn());
            return Exit::ConfigRefused;
        }
        Err(error @ (LogError::Filter { .. } | LogError::AlreadySet(_))) => {
            complain(error);
            return Exit::Failed;
        }
    };
    let LoadedRhi { config, warnings, .. } = loaded;
    for warning in warnings {
        tracing::warn!(target: "lazaret_rhi", "{warning}");
    }
    let result = serve(path.to_owned(), config, logs.clone());
    if let Err(error) = &result {
        tracing::error!(target: "lazaret_rhi", "{error:#}");
        // The log may be a file that nobody looks at while the start fails.
        if options.main.is_some() {
            complain(format_args!("{error:#}"));
        }
    }
    logs.flush(FLUSH_PATIENCE);
    if result.is_ok() { Exit::Done } else { Exit::Failed }
}

fn serve(path: PathBuf, config: RhiConfig, logs: Logs) -> anyhow::Result<()> {
    capabilities::require_net_admin()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("runtime")?;
    runtime.block_on(async move {
        let addresses = Linux::open().context("netlink")?;
        let signals = driver::signals().context("signals")?;
        let (changed, changes) = mpsc::channel(1);
        let monitor = tokio::spawn(monitor::run(changed));
        tracing::info!(
            target: "lazaret_rhi",
            interface = %config.interface,
            control_url = %config.control_url,
            vips = config.vips.len(),
            "starting {}",
            env!("CARGO_PKG_VERSION"),
        );
        let hooks = Hooks {
            load: Box::new(move || match file::load(&path) {
                Ok(LoadedRhi { config, warnings, .. }) => {
                    for warning in warnings {
                        tracing::warn!(target: "lazaret_rhi", "{warning}");
                    }
                    Ok(config)
                }
                Err(no_config) => Err(no_config.line()),
            }),
            reopen_logs: Box::new(move || logs.reopen()),
        };
        driver::run(config, addresses, changes, signals, hooks).await?;
        monitor.abort();
        Ok(())
    })
}
