//! Making TLS towards destinations ready before anything depends on it.

use model::address::Scheme;
use model::cluster::Cluster;
use model::config::Config;
use model::upstream::UpstreamHttp;
use upstream::Tls;
use upstream::tls::TlsError;

use crate::handle::ConfigureError;

/// Makes the TLS settings of all clusters with https destinations ready. A platform without roots is no reason to
/// refuse: what does not need them goes on working, what does fails with that reason.
pub fn prepare(tls: &Tls, config: &Config) -> Result<(), ConfigureError> {
    let needed = config.clusters.iter().filter(|cluster| uses_tls(cluster));
    for (cluster, http) in needed.flat_map(|cluster| versions(cluster).map(move |http| (cluster, http))) {
        match tls.prepare(&cluster.tls, http) {
            Ok(()) => {}
            Err(error @ TlsError::Platform(_)) => {
                tracing::warn!(target: "monitor", cluster = cluster.id.as_str(), %error, "destinations over https cannot be verified");
            }
            Err(source) => return Err(ConfigureError::Tls { cluster: cluster.id.clone(), source }),
        }
    }
    Ok(())
}

/// What traffic speaks, and what probes do when that is another one.
fn versions(cluster: &Cluster) -> impl Iterator<Item = UpstreamHttp> {
    let probes = cluster.health_check.active.as_ref().map(|check| check.http(cluster.http));
    std::iter::once(cluster.http).chain(probes.filter(|probes| *probes != cluster.http))
}

fn uses_tls(cluster: &Cluster) -> bool {
    let mut urls =
        cluster.destinations.iter().flat_map(|destination| [Some(&destination.address), destination.health.as_ref()]);
    urls.any(|url| url.is_some_and(|url| url.scheme == Scheme::Https))
}
