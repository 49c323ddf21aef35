//! Words and sentences for what the scheduler says.

use windtunnel_core::{DeviceId, Failure, GrantFailure, Overdue, Time, WaitReason};

use super::Reason;
use crate::gateway::catalogue::Catalogue;

/// The word for why a job was not admitted: the one of the reason header.
pub fn reason_of_refusal(refusal: windtunnel_core::Refusal) -> &'static str {
    refused(refusal).word()
}

/// The word for why a job failed: the one of the reason header.
pub fn reason_of_failure(failure: Failure) -> &'static str {
    failed(failure).word()
}

/// The word for what a job waited too long for: the one of the reason header.
pub fn reason_of_overdue(overdue: Overdue) -> &'static str {
    match overdue {
        Overdue::MaxWait => Reason::QueueExpired.word(),
        Overdue::Hopeless => Reason::DeadlineHopeless.word(),
    }
}

pub(super) fn refused(refusal: windtunnel_core::Refusal) -> Reason {
    use windtunnel_core::Refusal;
    match refusal {
        Refusal::QueueFull { .. } => Reason::QueueFull,
        Refusal::QueueBytesFull { .. } => Reason::QueueBytesFull,
        Refusal::DeadlineUnreachable { .. } => Reason::DeadlineUnreachable,
        Refusal::UnknownModel => Reason::UnknownModel,
        Refusal::NoSuchVariant => Reason::NoSuchVariant,
        Refusal::TooLarge { .. } => Reason::TooManyInputs,
        Refusal::Malformed => Reason::NoInputs,
        Refusal::Broken { .. } => Reason::ModelBroken,
        Refusal::CannotFit { .. } => Reason::CannotFit,
    }
}

pub(super) fn failed(failure: Failure) -> Reason {
    match failure {
        Failure::Step(GrantFailure::Aborted) => Reason::Aborted,
        Failure::Step(GrantFailure::Crashed) => Reason::RuntimeCrashed,
        Failure::Step(GrantFailure::Wedged) => Reason::RuntimeWedged,
        Failure::Step(GrantFailure::OutOfMemory) => Reason::OutOfMemory,
        Failure::Step(GrantFailure::Disconnected) => Reason::RuntimeDisconnected,
        Failure::Step(GrantFailure::Rejected) => Reason::RuntimeRejected,
        Failure::ModelRemoved => Reason::ModelRemoved,
        Failure::Broken => Reason::ModelBroken,
        Failure::Draining => Reason::Draining,
        Failure::CannotFit { .. } => Reason::CannotFit,
    }
}

/// The word for why a job waits.
pub fn reason_of_wait(reason: WaitReason) -> &'static str {
    match reason {
        WaitReason::Behind { .. } => "behind",
        WaitReason::SlotsBusy => "slots_busy",
        WaitReason::SlotsReserved => "slots_reserved",
        WaitReason::InteractiveMode { .. } => "interactive_mode",
        WaitReason::HigherClass { .. } => "higher_class",
        WaitReason::BatchHeld { .. } => "batch_held",
        WaitReason::Loading { .. } => "loading",
        WaitReason::Draining { .. } => "draining",
        WaitReason::NotLoaded => "not_loaded",
        WaitReason::FreeingMemory { .. } => "freeing_memory",
        WaitReason::LoadSlotBusy { .. } => "load_slot_busy",
        WaitReason::InteractiveLoadFirst { .. } => "interactive_load_first",
        WaitReason::NoRoom { .. } => "no_room",
        WaitReason::ForeignMemory { .. } => "foreign_memory",
        WaitReason::BackOff { .. } => "back_off",
        WaitReason::MonitorStale { .. } => "monitor_stale",
        WaitReason::Pressure { .. } => "pressure",
        WaitReason::LoadsPaused { .. } => "loads_paused",
        WaitReason::LoadFirst { .. } => "load_first",
    }
}

/// Why a job waits, for people; `now` is the time it is said.
pub fn sentence_of_wait(reason: WaitReason, catalogue: &Catalogue, now: Time) -> String {
    let on = |device: DeviceId| catalogue.device(device);
    let until = |at: Time| format!("{} more", at.since(now));
    match reason {
        WaitReason::Behind { jobs } => format!("{jobs} jobs of its class are before it"),
        WaitReason::SlotsBusy => "every instance that could serve it is full".to_owned(),
        WaitReason::SlotsReserved => "the free slots are kept for interactive work".to_owned(),
        WaitReason::InteractiveMode { device, guard_at: Some(at) } => {
            format!("{} is in interactive mode, the guard may come in {}", on(device), at.since(now))
        }
        WaitReason::InteractiveMode { device, guard_at: None } => format!("{} is in interactive mode", on(device)),
        WaitReason::HigherClass { device } => format!("background work goes first on {}", on(device)),
        WaitReason::BatchHeld { until: at } => format!("a batch is held to fill for {}", until(at)),
        WaitReason::Loading { .. } => "its model is being loaded".to_owned(),
        WaitReason::Draining { .. } => "the instance of its model is leaving".to_owned(),
        WaitReason::NotLoaded => "its model is not loaded".to_owned(),
        WaitReason::FreeingMemory { device, missing } => {
            format!("memory is being freed on {}, {missing} are missing", on(device))
        }
        WaitReason::LoadSlotBusy { device } => format!("{} loads as many models as it may at once", on(device)),
        WaitReason::InteractiveLoadFirst { device } => {
            format!("a load for interactive work goes first on {}", on(device))
        }
        WaitReason::NoRoom { device, until: Some(at) } => {
            format!("its model does not fit on {} beside what may not go for {}", on(device), until(at))
        }
        WaitReason::NoRoom { device, until: None } => {
            format!("its model does not fit on {} beside what may not go", on(device))
        }
        WaitReason::ForeignMemory { device, used } => format!("other programs use {used} of {}", on(device)),
        WaitReason::BackOff { until: at } => format!("its model failed to load and is tried again after {}", until(at)),
        WaitReason::MonitorStale { device } => format!("the memory of {} cannot be read", on(device)),
        WaitReason::Pressure { device, .. } => format!("memory is scarce on {}", on(device)),
        WaitReason::LoadsPaused { device, until: at } => format!("{} loads nothing for {}", on(device), until(at)),
        WaitReason::LoadFirst { device } => format!("it would outlast a load that goes first on {}", on(device)),
    }
}
