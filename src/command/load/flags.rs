//! One workload from the command line, as a scenario like any other.

use std::path::Path;

use serde_json::json;
use windtunnel_config::{ScenarioFile, to_toml};

use crate::{args::LoadArgs, failure::Failure};

/// The scenario of a load without one.
pub fn scenario(args: &LoadArgs) -> Result<ScenarioFile, Failure> {
    let model = args.model.as_deref().unwrap_or_default();
    let arrivals = match &args.trace {
        Some(trace) => json!({"process": "trace", "file": trace}),
        None => json!({"process": "poisson", "rate": args.rate.unwrap_or(1.0)}),
    };
    let mut run = json!({"replications": 1});
    let default = args.trace.is_none().then_some("60s");
    if let Some(horizon) = args.lasting.as_deref().or(default) {
        run["horizon"] = horizon.into();
    }
    let document = json!({
        "title": format!("a load of {model}"),
        "run": run,
        "workload": [{
            "name": "requests",
            "model": model,
            "prompt_tokens": args.prompt_tokens.unwrap_or(100),
            "output_tokens": args.output_tokens.unwrap_or(50),
            "arrivals": arrivals,
        }],
    });
    Ok(ScenarioFile::parse(&to_toml(&document), Path::new("the command line"))?.served_elsewhere())
}
