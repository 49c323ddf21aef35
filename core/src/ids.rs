//! Names for things: small integers, dense, handed out in order and never reused.

use core::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($raw:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub $raw);

        impl $name {
            /// Its place in a table indexed by this kind of id.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

id!(
    /// A job; the driver numbers jobs in the order it submits them, from 0.
    JobId(u64), "job "
);
id!(
    /// One start, stop or grant; the scheduler numbers them from 0. Every attempt ends in exactly one fact that names it.
    Attempt(u64), "attempt "
);
id!(
    /// A model and a placement; numbered from 0, first those resident at the start.
    InstanceId(u32), "instance "
);
id!(
    /// A model: its place in [`crate::Configuration::models`].
    ModelId(u32), "model "
);
id!(
    /// A device: its place in [`crate::Configuration::devices`].
    DeviceId(u32), "device "
);
id!(
    /// A family: its place in [`crate::Configuration::families`].
    FamilyId(u32), "family "
);
id!(
    /// Who sends the work: a workload of a scenario or the name of an API key; its place in [`crate::Configuration::labels`].
    LabelId(u32), "label "
);
