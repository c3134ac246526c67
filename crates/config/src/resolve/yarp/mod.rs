//! The YARP formats.
use crate::PolicyNames;
use crate::raw::Node;
use crate::raw::section::Reading;
use model::config::Config;
pub fn resolve(r: &mut Reading<'_>, root: &Node, names: &PolicyNames) -> Config {
    super::native::resolve(r, root, names)
}
