//! TLS of listeners as the program sees it: files that are read before anything starts and again when they change, and
//! what is wrong with them, said at the place in the configuration that names them.

use std::sync::Arc;
use std::time::Duration;

use ::config::raw::path::Path;
use ::config::{Loaded, Report};
use proxy::{ListenerFault, Prepared, Refreshed, ServerTls};
use telemetry::metrics::{Metrics, Stale};

/// Reads the files of a configuration's listeners. Blocks for as long as the disk does.
pub(crate) fn prepare(tls: &ServerTls, loaded: &Loaded) -> Result<Prepared, Box<Report>> {
    tls.prepare(&loaded.config.listeners).map_err(|faults| report(loaded, &faults))
}

/// Makes them what new connections see.
pub(crate) fn commit(tls: &ServerTls, prepared: Prepared) {
    for warning in &prepared.warnings {
        tracing::warn!(target: "tls", "{warning}");
    }
    tls.commit(prepared);
}

/// Looks at the files again and again; never ends.
pub(crate) async fn watch(tls: ServerTls, metrics: Arc<Metrics>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let tls = tls.clone();
        // A disk that hangs must not hold up the control thread.
        let Ok(refreshed) = tokio::task::spawn_blocking(move || tls.refresh()).await else { continue };
        tell(&refreshed, &metrics);
    }
}

fn tell(refreshed: &Refreshed, metrics: &Metrics) {
    for files in &refreshed.taken {
        tracing::info!(target: "tls", files, "certificates have changed and are in use");
    }
    for warning in &refreshed.warnings {
        tracing::warn!(target: "tls", "{warning}");
    }
    for fault in &refreshed.refused {
        tracing::error!(target: "tls", "a file has changed and cannot be used, what was in use stays: {fault}");
    }
    let stale = if refreshed.is_stale { Stale::Yes } else { Stale::No };
    metrics.certificates(refreshed.taken.len(), refreshed.refused.len(), stale);
}

fn report(loaded: &Loaded, faults: &[ListenerFault]) -> Box<Report> {
    loaded.refuse(faults.iter().map(|listener| {
        let setting = listener.setting();
        let path = Path::of(setting.iter().map(String::as_str));
        (path, listener.message(), listener.mend())
    }))
}

/// A change is in use after two looks at the most.
const LOOK_EVERY: Duration = Duration::from_secs(2);
