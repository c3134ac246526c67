//! The configuration without what may be secret: the health core compares it, and never reads it.
//!
//! Values of probe headers and of metadata, queries of addresses and probes, and the text that a probe's body must hold
//! are replaced by numbers: equal texts by equal ones, so that a reload that changes one of them is still a change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::address::Url;
use model::cluster::Cluster;

/// Gives numbers to texts.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    numbers: BTreeMap<String, u64>,
    used: BTreeSet<u64>,
    next: u64,
}

impl Redactor {
    /// The clusters as a recording may show them.
    pub(crate) fn clusters(&mut self, clusters: &[Arc<Cluster>]) -> Vec<Cluster> {
        self.used.clear();
        let plain = clusters.iter().map(|cluster| self.cluster(cluster)).collect();
        if self.numbers.len() > MOST {
            self.numbers.retain(|_, number| self.used.contains(number));
        }
        plain
    }

    fn cluster(&mut self, cluster: &Cluster) -> Cluster {
        let mut plain = cluster.clone();
        plain.metadata.values_mut().for_each(|value| self.hide(value));
        if let Some(check) = &mut plain.health_check.active {
            check.request.headers.iter_mut().for_each(|(_, value)| self.hide(value));
            check.request.query.iter_mut().for_each(|query| self.hide(query));
            check.request.expect_body.iter_mut().for_each(|text| self.hide(text));
        }
        for destination in &mut plain.destinations {
            self.url(&mut destination.address);
            destination.health.iter_mut().for_each(|url| self.url(url));
        }
        plain
    }

    /// An address as a recording may show it.
    pub(crate) fn url(&mut self, url: &mut Url) {
        url.query.iter_mut().for_each(|query| self.hide(query));
    }

    fn hide(&mut self, text: &mut String) {
        let next = &mut self.next;
        let number = *self.numbers.entry(std::mem::take(text)).or_insert_with(|| {
            *next += 1;
            *next
        });
        self.used.insert(number);
        *text = format!("#{number}");
    }
}

/// Of more texts than this, those that are no longer configured are forgotten.
const MOST: usize = 4096;
