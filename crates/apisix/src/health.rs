//! Lazaret's own health document, `GET /api/health`: the same verdicts as in the APISIX shape, with what a careful
//! reader needs besides: which process speaks, how fresh its core is, and whether anybody probed the node at all.

use serde::{Deserialize, Serialize};

/// The document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthDocument {
    /// Random per process: another value means that everything known of the one before is void.
    pub instance: String,
    /// Number of the last event that is part of it; the next `after`.
    pub revision: u64,
    /// Milliseconds since the health core last ran its timers.
    pub core_age_ms: u64,
    /// The process is in a planned stop: every node is reported unhealthy.
    #[serde(default)]
    pub draining: bool,
    /// Every cluster, in the order of the configuration.
    pub clusters: Vec<ClusterStatus>,
}

/// One cluster of the document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterStatus {
    /// Its id.
    pub id: String,
    /// Its destinations, in the order of the configuration.
    pub nodes: Vec<NodeReport>,
}

/// One destination of the document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReport {
    /// Its id.
    pub id: String,
    /// Host of its address; IPv6 in brackets.
    pub ip: String,
    /// Port of its address.
    pub port: u16,
    /// The node's status in APISIX's words, or `unknown`.
    pub status: String,
    /// Who judges it.
    pub probed: Probed,
    /// Milliseconds since the last verdict on it (a judged probe, or a change of a value); `None`: there was none yet.
    pub verdict_age_ms: Option<u64>,
}

/// Who judges a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Probed {
    /// Probes.
    Active,
    /// Its traffic alone: without traffic nothing is learnt.
    PassiveOnly,
    /// Nobody: its status says nothing.
    None,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_document_reads_with_keys_it_does_not_know() {
        let text = r#"{"instance":"5f1c","revision":7,"core_age_ms":3,"later":true,"clusters":[{"id":"api","nodes":[
            {"id":"a","ip":"[::1]","port":80,"status":"healthy","probed":"passive-only","verdict_age_ms":null}]}]}"#;
        let document: HealthDocument = serde_json::from_str(text).unwrap();
        assert!(!document.draining);
        assert_eq!(document.clusters[0].nodes[0].probed, Probed::PassiveOnly);
        let again = serde_json::from_str(&serde_json::to_string(&document).unwrap()).unwrap();
        assert_eq!(document, again);
    }
}
