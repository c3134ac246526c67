//! The located tree becomes the model: one module per format, one file per section. What formats share stands beside
//! them ([`matching`], [`policy`]).

pub mod native;

pub mod yarp;

pub mod rhi;

mod elsewhere;
mod matching;
mod policy;
pub mod transforms;

use model::cluster::Compat;

use crate::origin::Origin;
use crate::raw::path::Path;
use crate::raw::section::{Field, Reading};
use crate::source::Span;

/// Whose arithmetic a cluster follows: what the command line asks for, else the cluster's own key. `path` is that key's.
fn compat(r: &mut Reading<'_>, field: Option<Field<'_>>, path: Path, asked: Option<Compat>) -> Compat {
    let words = [("none", Compat::None), ("yarp", Compat::Yarp), ("nginx", Compat::Nginx)];
    let own = field.and_then(|field| field.word(r, &words));
    match asked {
        Some(asked) => {
            r.origins.record(path, Origin::CommandLine, Span::default());
            asked
        }
        None => own.unwrap_or_default(),
    }
}
