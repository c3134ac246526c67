//! The located tree becomes the model: one module per format, one file per section. What formats share stands beside
//! them ([`matching`], [`policy`]).

pub mod native;

pub mod yarp;

pub mod rhi;

mod matching;
mod policy;

use model::cluster::Compat;
use model::config::Config;

use crate::origin::Origin;
use crate::raw::path::Path;
use crate::raw::section::Reading;
use crate::source::Span;

/// Puts every cluster under `compat`, as the command line asks.
pub fn override_compat(r: &mut Reading<'_>, config: &mut Config, compat: Compat) {
    for cluster in &mut config.clusters {
        cluster.compat = compat;
        let path = Path::of(["clusters", cluster.id.as_str(), "compat"]);
        r.origins.record(path, Origin::CommandLine, Span::default());
    }
}
