//! Session affinity: a client stays with the destination that served it first.
//!
//! The cookie's value is a hash of the destination's id, so it reveals neither address nor name. A request may carry
//! the cookie several times (on several lines, for several paths): the first value that names a destination of the
//! cluster counts. A value that names none is treated as if there were no cookie; under `compat: yarp` it counts as a
//! pin that cannot be met, as there. A pin is set only by a response that was forwarded and holds nothing against its
//! destination.

pub mod cookie;
pub mod hash;

use std::sync::Arc;

use model::affinity::SessionAffinity;
use model::cluster::Compat;
use model::id::DestinationIndex;
use model::request::Fields;

pub use hash::{key, upper};

/// What a request's cookie says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pin {
    /// Nothing that counts: any destination will do.
    Absent,
    /// This destination.
    To(DestinationIndex),
    /// A destination that the cluster does not have.
    Unknown,
}

/// Reads the pin of a request. `keys` are the cookie values of the cluster's destinations, in their order.
pub fn lookup<'a>(
    affinity: &SessionAffinity,
    compat: Compat,
    keys: impl Iterator<Item = &'a Arc<str>> + Clone,
    fields: &dyn Fields,
) -> Pin {
    let mut pin = Pin::Absent;
    fields.each("cookie", &mut |line| {
        for value in cookie::values(line, affinity.key_name.as_bytes()) {
            if let Pin::To(_) = pin {
                return;
            }
            let place = (0u32..).zip(keys.clone()).find(|(_, key)| key.as_bytes().eq_ignore_ascii_case(value));
            pin = match (place, compat) {
                (Some((index, _)), _) => Pin::To(DestinationIndex(index)),
                (None, Compat::Yarp) => Pin::Unknown,
                (None, Compat::None | Compat::Nginx) => pin,
            };
        }
    });
    pin
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::affinity::{AffinityCookie, AffinityFailurePolicy, AffinityPolicy};

    struct Lines(&'static [&'static str]);

    impl Fields for Lines {
        fn each(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
            if name == "cookie" {
                self.0.iter().for_each(|line| visit(line.as_bytes()));
            }
        }
    }

    #[test]
    fn the_first_value_that_names_a_destination_counts() {
        let affinity = SessionAffinity {
            policy: AffinityPolicy::HashCookie,
            failure_policy: AffinityFailurePolicy::Redistribute,
            key_name: "lz".to_owned(),
            cookie: AffinityCookie::default(),
        };
        let keys: Vec<Arc<str>> = ["aa", "bb"].map(Arc::from).to_vec();
        let b = Pin::To(DestinationIndex(1));
        let a = Pin::To(DestinationIndex(0));
        for (lines, native, yarp) in [
            (&[][..], Pin::Absent, Pin::Absent),
            (&["x=aa"], Pin::Absent, Pin::Absent),
            (&["LZ=aa"], Pin::Absent, Pin::Absent),
            (&["lz=bb"], b, b),
            (&["lz=\"bb\""], b, b),
            (&["x=1;lz=bb"], b, b),
            (&["x=1", "y=2; lz=bb ; z"], b, b),
            (&["lz=zz; lz=bb"], b, b),
            (&["lz=bb; lz=aa"], b, b),
            (&["lz=aa", "lz=bb"], a, a),
            (&["lz=zz"], Pin::Absent, Pin::Unknown),
            (&["lz=b"], Pin::Absent, Pin::Unknown),
            (&["lz="], Pin::Absent, Pin::Unknown),
        ] {
            let pin = |compat| lookup(&affinity, compat, keys.iter(), &Lines(lines));
            assert_eq!((pin(Compat::None), pin(Compat::Yarp)), (native, yarp), "{lines:?}");
        }
    }
}
