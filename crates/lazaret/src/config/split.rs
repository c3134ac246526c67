//! Several clusters behind one route, as code says them.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// One of a route's `clusters`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WeightedClusterConfig {
    /// Its id.
    pub cluster_id: String,
    /// Its share of the sum of all weights; 0 gets what is forced to it only.
    pub weight: u32,
}

impl WeightedClusterConfig {
    /// This cluster with this weight.
    pub fn new(cluster_id: &str, weight: u32) -> Self {
        Self { cluster_id: cluster_id.to_owned(), weight }
    }
}

/// `sticky` of a route with several clusters: who keeps a client on its side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StickyConfig {
    /// A cookie of this name.
    Cookie(String),
    /// A hash of the client's address.
    ClientAddress,
}

impl Serialize for StickyConfig {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::ClientAddress => out.serialize_str("client_address"),
            Self::Cookie(name) => {
                let mut map = out.serialize_map(Some(1))?;
                map.serialize_entry("cookie", name)?;
                map.end()
            }
        }
    }
}

/// `force` of a route with several clusters: where a request may name its side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ForceConfig {
    /// In this header, which goes first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// In this cookie.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cookie: Option<String>,
}

/// Writes the clusters as `{a: 90, b: 10}`; repeated ids stay repeated, so that the reader can refuse them.
pub(super) fn clusters<S: Serializer>(clusters: &[WeightedClusterConfig], out: S) -> Result<S::Ok, S::Error> {
    out.collect_map(clusters.iter().map(|side| (&side.cluster_id, side.weight)))
}
