//! Why a simulation cannot be done.

use thiserror::Error;

use windtunnel_config::ConfigError;

use crate::trace::TraceError;

/// Why a simulation cannot be done.
#[derive(Debug, Error)]
pub enum SimError {
    /// A scenario file cannot be used, as it stands or with the values of a sweep.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A trace cannot be used.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The scenario asks for something that cannot be simulated.
    #[error("simulate: {0}")]
    Scenario(String),
    /// The journal cannot be written; a simulation without its journal would be worth nothing.
    #[error("write the journal: {0}")]
    Journal(#[from] std::io::Error),
    /// Whoever runs the points of a sweep elsewhere cannot.
    #[error("{0}")]
    Elsewhere(Box<dyn std::error::Error + Send + Sync>),
}
