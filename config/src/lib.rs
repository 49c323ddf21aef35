//! The file form of configuration and scenarios: units, decimals, nearest keys, JSON Schema.
//!
//! A [`ScenarioFile`] is the text of a scenario laid over the configuration it starts from. Resolving it, with or without
//! overrides, gives a [`Scenario`]: integers and names, every default filled in, ready for the simulator. Values that the
//! scheduler gets go from their decimal text to integers without ever being a floating-point number.
//!
//! A [`DaemonFile`] is the same for a daemon: resolving it for a machine gives a [`Daemon`], the scheduler's configuration
//! beside everything it has no use for.
//!
//! What a section may hold is written down once, as a table of its keys. The check of a file, the JSON Schema and the
//! reference of the policy's keys all walk the same tables.

mod capacity;
mod daemon;
mod decode;
mod error;
mod estimate;
mod fault;
mod form;
mod recorded;
mod scenario;
mod sections;
mod source;

pub use daemon::{Backend, ClientKey, Daemon, DeviceSource, FoundDevice, Launch, Secret, Server};
pub use decode::parse_span;
pub use error::{ConfigError, Problem};
pub use estimate::{Estimator, Site};
pub use fault::{Fault, FaultKind, MonitorTrouble, Occurrence};
pub use form::{did_you_mean, reference_config, schema_config, schema_scenario};
pub use recorded::{policy_settings, scenario_of};
pub use scenario::*;
pub use sections::{PolicyKey, launch_keys, policy_keys};
pub use source::{DaemonFile, Override, ScenarioFile, to_toml};
