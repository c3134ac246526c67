//! Names: newtypes over shared strings, and the dense numbers that stand for them on the hot path.
//!
//! Ids compare by their exact characters; configuration sources that ignore case (YARP) resolve that before a value
//! gets here.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The name as written in the configuration.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                Self(name.into())
            }
        }

        impl From<String> for $name {
            fn from(name: String) -> Self {
                Self(name.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
    };
}

id!(
    /// A cluster: a group of interchangeable destinations and their policies.
    ClusterId
);
id!(
    /// A destination within its cluster. Unique only together with its [`ClusterId`].
    DestinationId
);
id!(
    /// A route.
    RouteId
);
id!(
    /// A listener.
    ListenerId
);
id!(
    /// The name under which a custom policy was registered in code.
    PolicyName
);

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The number as an index.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

number!(
    /// A destination's place in the board's records. Given by the health core, kept while the destination's id and
    /// address stay, never shared by two living destinations.
    Slot
);
number!(
    /// A cluster's place in one snapshot (or one configuration). Means nothing outside of it.
    ClusterIndex
);
number!(
    /// A destination's place within its cluster in one snapshot. Means nothing outside of it.
    DestinationIndex
);
number!(
    /// A route's place in one snapshot. Means nothing outside of it.
    RouteIndex
);
number!(
    /// A traffic thread, counted from 0.
    WorkerId
);

/// Counts what was published: configurations, snapshots and events each step it up. Starts at 0, never repeats within
/// one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Revision(pub u64);

impl Revision {
    /// The revision after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The full name of a destination: cluster and destination id.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DestinationKey {
    /// The cluster it belongs to.
    pub cluster: ClusterId,
    /// Its id there.
    pub destination: DestinationId,
}

impl DestinationKey {
    /// Joins the two names.
    pub fn new(cluster: impl Into<ClusterId>, destination: impl Into<DestinationId>) -> Self {
        Self { cluster: cluster.into(), destination: destination.into() }
    }
}

impl fmt::Display for DestinationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.cluster, self.destination)
    }
}

impl fmt::Debug for DestinationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
