//! `/admin/*`: what operators see and may ask for.

mod status;

pub(super) use status::stale;

use std::{sync::Arc, time::Duration};

use http::{Response, StatusCode};
use serde_json::json;
use windtunnel_core::{InstanceId, ModelId, Request, Stage, View, Wanted};

use super::{
    answer::Answer,
    exchange::stopped,
    names::{json, unescaped, unknown},
    refuse::{Reason, Refusal},
    routes::Admin,
    shared::{Rules, Shared},
};

/// The most lines of one answer.
const LINES: usize = 1000;

/// Answers an operator.
pub(super) async fn answer(
    shared: &Arc<Shared>,
    rules: &Rules,
    wanted: Admin<'_>,
    query: Option<&str>,
) -> Result<Response<Answer>, Refusal> {
    match wanted {
        Admin::Status => Ok(json(status::status(&view(shared).await?, rules, shared.phase()).to_string())),
        Admin::Events => events(shared, query),
        Admin::Load(name) => load(shared, rules, &unescaped(name), query),
        Admin::Unload(name) => unload(shared, rules, &unescaped(name)).await,
        Admin::Reset(name) => {
            let model = model(rules, &unescaped(name))?;
            shared.desk.operate(Request::Reset { model });
            Ok(accepted(rules, model))
        }
        Admin::Reload => reload(shared).await,
    }
}

/// A picture of the moment.
pub(super) async fn view(shared: &Shared) -> Result<View, Refusal> {
    let view = tokio::time::timeout(Duration::from_secs(5), shared.desk.view()).await;
    view.ok().flatten().ok_or_else(stopped)
}

fn events(shared: &Shared, query: Option<&str>) -> Result<Response<Answer>, Refusal> {
    let after = match parameter(query, "after") {
        None => 0,
        Some(text) => text.parse().map_err(|_| {
            Refusal::new(Reason::BadValue, "`after` has to be a number: the `last` of an answer").about("after")
        })?,
    };
    let (last, mut lines) = shared.operations.events(after);
    lines.drain(..lines.len().saturating_sub(LINES));
    Ok(json(json!({"last": last, "lines": lines}).to_string()))
}

fn load(shared: &Shared, rules: &Rules, name: &str, query: Option<&str>) -> Result<Response<Answer>, Refusal> {
    let model = model(rules, name)?;
    let device = match parameter(query, "device") {
        Some(name) => rules.catalogue.device_named(&unescaped(name)),
        None => rules.catalogue.places(model).first().copied(),
    };
    let device = device.filter(|device| rules.catalogue.places(model).contains(device));
    let message = "`device` has to be one that the model may be placed on";
    let device = device.ok_or_else(|| Refusal::new(Reason::BadValue, message).about("device"))?;
    shared.desk.operate(Request::Load { model, device });
    Ok(accepted(rules, model))
}

async fn unload(shared: &Shared, rules: &Rules, name: &str) -> Result<Response<Answer>, Refusal> {
    let model = model(rules, name)?;
    let instances: Vec<InstanceId> = instances(&view(shared).await?, model).collect();
    if instances.is_empty() {
        return Err(Refusal::new(Reason::NotLoaded, "the model is not loaded"));
    }
    instances.into_iter().for_each(|instance| shared.desk.operate(Request::Unload { instance }));
    Ok(accepted(rules, model))
}

fn instances(view: &View, model: ModelId) -> impl Iterator<Item = InstanceId> {
    let all = view.devices.iter().flat_map(|device| &device.instances);
    let there = move |instance: &&windtunnel_core::InstanceView| {
        instance.model == model && matches!(instance.stage, Stage::Loading | Stage::Ready)
    };
    all.filter(there).map(|instance| instance.instance)
}

async fn reload(shared: &Arc<Shared>) -> Result<Response<Answer>, Refusal> {
    let operations = Arc::clone(&shared.operations);
    match tokio::task::spawn_blocking(move || operations.reload()).await {
        Ok(Ok(done)) => Ok(json(json!({"reloaded": done}).to_string())),
        Ok(Err(wrong)) => Err(Refusal::new(Reason::ReloadFailed, wrong)),
        Err(_) => Err(Refusal::new(Reason::ReloadFailed, "the reload broke down")),
    }
}

fn model(rules: &Rules, name: &str) -> Result<ModelId, Refusal> {
    match rules.catalogue.find(name).map(|named| named.wanted) {
        Some(Wanted::Model(model)) => Ok(model),
        Some(Wanted::Family(_)) => {
            Err(Refusal::new(Reason::BadValue, format!("{name:?} is a family; name one of its models")))
        }
        None => Err(unknown(&rules.catalogue, name)),
    }
}

/// It was asked for; what becomes of it is among the events.
fn accepted(rules: &Rules, model: ModelId) -> Response<Answer> {
    let mut answer = json(json!({"accepted": rules.catalogue.model(model)}).to_string());
    *answer.status_mut() = StatusCode::ACCEPTED;
    answer
}

fn parameter<'a>(query: Option<&'a str>, wanted: &str) -> Option<&'a str> {
    let mut pairs = query.unwrap_or_default().split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.find(|(name, _)| *name == wanted).map(|(_, value)| value)
}
