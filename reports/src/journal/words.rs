//! Words for reasons, as operators read them. No word carries punctuation, so that expectations can name any of them, and
//! none is one of those that lines begin with, so that an expectation that begins with such a word means only those lines.

use windtunnel_core::{
    AbortCause, BreakerState, Bytes, Choice, DeviceId, ExitCause, Failure, GrantFailure, LoadFailure, Mode,
    MonitorHealth, Nonsense, Outcome, Overdue, PressureLevel, Refusal, StopCause, Tier, Time, WaitReason,
};

use super::names::Names;

pub(super) const fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Completed => "complete",
        Outcome::Refused(_) => "refuse",
        Outcome::TimedOut(_) => "timeout",
        Outcome::Failed(_) => "fail",
        Outcome::Cancelled => "cancel",
    }
}

/// Why a job was not admitted.
pub(super) fn refusal(refusal: Refusal, now: Time) -> String {
    match refusal {
        Refusal::QueueFull { limit } => format!("queue full limit={limit}"),
        Refusal::QueueBytesFull { limit } => format!("queue bytes full limit={}", size(limit)),
        Refusal::DeadlineUnreachable { predicted, retry_after } => {
            format!("deadline unreachable predicted={} retry={retry_after}", predicted.since(now))
        }
        Refusal::UnknownModel => "unknown model".to_owned(),
        Refusal::NoSuchVariant => "quality or capability missing".to_owned(),
        Refusal::TooLarge { limit } => format!("too large limit={limit}"),
        Refusal::Malformed => "malformed".to_owned(),
        Refusal::Broken { retry_after } => format!("model keeps failing retry={retry_after}"),
        Refusal::CannotFit { needs, room } => format!("can never fit needs={} room={}", size(needs), size(room)),
    }
}

pub(super) const fn overdue(overdue: Overdue) -> &'static str {
    match overdue {
        Overdue::MaxWait => "waited too long",
        Overdue::Hopeless => "deadline hopeless",
    }
}

pub(super) const fn failure(failure: Failure) -> &'static str {
    match failure {
        Failure::Step(cause) => grant_failure(cause),
        Failure::ModelRemoved => "model removed",
        Failure::Broken => "model keeps failing",
        Failure::Draining => "the daemon ended",
        Failure::CannotFit { .. } => "can never fit",
    }
}

pub(super) const fn grant_failure(cause: GrantFailure) -> &'static str {
    match cause {
        GrantFailure::Aborted => "aborted",
        GrantFailure::Crashed => "crashed",
        GrantFailure::Wedged => "wedged",
        GrantFailure::OutOfMemory => "out of memory",
        GrantFailure::Disconnected => "disconnected",
        GrantFailure::Rejected => "rejected by the runtime",
    }
}

/// A number of bytes that a person can read: whole mebibytes as they are, anything else to a tenth of the next unit.
pub(super) fn size(bytes: Bytes) -> String {
    const MIB: u64 = 1 << 20;
    match bytes.get() {
        whole if whole.is_multiple_of(MIB) || whole < 1024 => bytes.to_string(),
        small @ ..MIB => format!("{:.1}KiB", small as f64 / 1024.0),
        large => format!("{:.1}MiB", large as f64 / MIB as f64),
    }
}

pub(super) const fn load_failure(cause: LoadFailure) -> &'static str {
    match cause {
        LoadFailure::Crashed => "crashed",
        LoadFailure::OutOfMemory => "out of memory",
        LoadFailure::Stalled => "stalled",
        LoadFailure::NotStarted => "not started",
        LoadFailure::Stopped => "stopped",
    }
}

pub(super) fn exit(cause: ExitCause) -> String {
    match cause {
        ExitCause::Code(code) => format!("exit code {code}"),
        ExitCause::Signal(signal) => format!("signal {signal}"),
        ExitCause::Wedged => "wedged".to_owned(),
        ExitCause::OutOfMemory => "out of memory".to_owned(),
    }
}

pub(super) const fn pressure(level: PressureLevel) -> &'static str {
    match level {
        PressureLevel::Normal => "normal",
        PressureLevel::Warn => "warn",
        PressureLevel::Critical => "critical",
    }
}

pub(super) const fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Interactive => "interactive",
        Mode::Idle => "idle",
    }
}

pub(super) const fn stop(cause: StopCause) -> &'static str {
    match cause {
        StopCause::Operator => "operator",
        StopCause::Changed => "configuration changed",
        StopCause::Removed => "removed",
        StopCause::Evicted => "evicted",
        StopCause::Idle => "unused",
        StopCause::Pressure => "memory scarce",
        StopCause::OutOfMemory => "memory ran out",
    }
}

pub(super) const fn abort(cause: AbortCause) -> &'static str {
    match cause {
        AbortCause::Cancelled => "cancelled",
        AbortCause::Evicted => "evicted",
        AbortCause::OutOfMemory => "memory ran out",
    }
}

pub(super) const fn choice(choice: Choice) -> &'static str {
    match choice {
        Choice::Best => "best",
        Choice::BetterAbsent => "better ones absent",
        Choice::BetterBusy => "better ones busy",
        Choice::BetterBroken => "better ones keep failing",
        Choice::BetterTooLarge => "better ones do not fit",
        Choice::BetterLeaving => "better ones leaving",
        Choice::BetterNeedsEviction => "better ones need room",
    }
}

pub(super) const fn tier(tier: Tier) -> &'static str {
    match tier {
        Tier::Cold => "cold",
        Tier::Hot => "hot",
        Tier::Pinned => "pinned",
    }
}

pub(super) const fn monitor(health: MonitorHealth) -> &'static str {
    match health {
        MonitorHealth::Alive => "alive",
        MonitorHealth::Stale => "stale",
    }
}

pub(super) fn breaker(state: BreakerState, now: Time) -> String {
    match state {
        BreakerState::Closed => "closed".to_owned(),
        BreakerState::Open { until } => format!("open for {}", until.since(now)),
        BreakerState::HalfOpen => "half open".to_owned(),
    }
}

pub(super) const fn nonsense(cause: Nonsense) -> &'static str {
    match cause {
        Nonsense::TimeWentBack => "time went back",
        Nonsense::StartedTwice => "started twice",
        Nonsense::NotStarted => "not started",
        Nonsense::JobOutOfOrder => "job out of order",
        Nonsense::NoSuchJob => "no such job",
        Nonsense::NoSuchAttempt => "no such attempt",
        Nonsense::NoSuchInstance => "no such instance",
        Nonsense::NoSuchPlacement => "no such placement",
        Nonsense::AlreadyThere => "already there",
        Nonsense::UnsoundConfiguration => "unsound configuration",
    }
}

/// Why a job waits.
pub(super) fn waits(reason: WaitReason, names: &Names, now: Time) -> String {
    match reason {
        WaitReason::Behind { jobs } => format!("behind {jobs} jobs"),
        WaitReason::SlotsBusy => "slots busy".to_owned(),
        WaitReason::SlotsReserved => "free slots reserved for interactive work".to_owned(),
        WaitReason::InteractiveMode { device, guard_at: Some(at) } => {
            format!("interactive work on {} earliest in {}", names.device(device), at.since(now))
        }
        WaitReason::InteractiveMode { device, guard_at: None } => {
            format!("interactive work on {} for good", names.device(device))
        }
        WaitReason::HigherClass { device } => format!("higher class first on {}", names.device(device)),
        WaitReason::BatchHeld { until } => format!("batch held for {}", until.since(now)),
        WaitReason::Loading { instance } => format!("loading {}", names.place(instance)),
        WaitReason::Draining { instance } => format!("draining {}", names.place(instance)),
        WaitReason::NotLoaded => "no instance yet".to_owned(),
        WaitReason::FreeingMemory { device, missing } => {
            format!("memory of {} missing={}", names.device(device), size(missing))
        }
        WaitReason::LoadSlotBusy { device } => format!("other loads on {}", names.device(device)),
        WaitReason::InteractiveLoadFirst { device } => format!("interactive loads first on {}", names.device(device)),
        WaitReason::NoRoom { device, until: Some(at) } => {
            format!("no room on {} earliest in {}", names.device(device), at.since(now))
        }
        WaitReason::NoRoom { device, until: None } => format!("no room on {}", names.device(device)),
        WaitReason::ForeignMemory { device, used } => {
            format!("other programs on {} use {}", names.device(device), size(used))
        }
        WaitReason::BackOff { until } => format!("loading failed again in {}", until.since(now)),
        WaitReason::MonitorStale { device } => format!("memory of {} unknown", names.device(device)),
        WaitReason::Pressure { device, level: _ } => format!("memory of {} scarce", names.device(device)),
        WaitReason::LoadsPaused { device, until } => {
            format!("no loads on {} for {}", names.device(device), until.since(now))
        }
        WaitReason::LoadFirst { device } => format!("interactive loading on {}", names.device(device)),
    }
}

/// What keeps a job waiting, without moments: for reports on whole runs.
pub(crate) fn obstacle<'a>(reason: WaitReason, name: impl Fn(DeviceId) -> &'a str) -> String {
    match reason {
        WaitReason::Behind { .. } => "others were before it".to_owned(),
        WaitReason::SlotsBusy => "all slots busy".to_owned(),
        WaitReason::SlotsReserved => "free slots are kept for interactive work".to_owned(),
        WaitReason::InteractiveMode { device, .. } => format!("interactive work on {}", name(device)),
        WaitReason::HigherClass { device } => format!("a higher class came first on {}", name(device)),
        WaitReason::BatchHeld { .. } => "a batch was held".to_owned(),
        WaitReason::Loading { .. } => "its model was being loaded".to_owned(),
        WaitReason::Draining { .. } => "its model was leaving".to_owned(),
        WaitReason::NotLoaded => "no instance could be had".to_owned(),
        WaitReason::FreeingMemory { device, .. } => format!("memory of {} was being freed", name(device)),
        WaitReason::LoadSlotBusy { device } => format!("other loads on {}", name(device)),
        WaitReason::InteractiveLoadFirst { device } => format!("interactive loads came first on {}", name(device)),
        WaitReason::NoRoom { device, .. } => format!("no room on {}", name(device)),
        WaitReason::ForeignMemory { device, .. } => format!("other programs used memory of {}", name(device)),
        WaitReason::BackOff { .. } => "its model failed to load".to_owned(),
        WaitReason::MonitorStale { device } => format!("the memory of {} was unknown", name(device)),
        WaitReason::Pressure { device, .. } => format!("memory of {} was scarce", name(device)),
        WaitReason::LoadsPaused { device, .. } => format!("no loads on {} after memory was scarce", name(device)),
        WaitReason::LoadFirst { device } => format!("an interactive load on {}", name(device)),
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_core::{InstanceId, Span};

    use super::*;
    use crate::journal::WORDS;

    #[test]
    fn sizes_can_be_read() {
        let sizes = [0, 1000, 1536, 1 << 20, (1 << 20) + 1, 8 << 30, (8 << 30) + 300_000].map(Bytes::new).map(size);
        assert_eq!(sizes, ["0B", "1000B", "1.5KiB", "1MiB", "1.0MiB", "8192MiB", "8192.3MiB"]);
    }

    #[test]
    fn no_reason_holds_a_word_that_lines_begin_with() {
        let (device, instance) = (DeviceId(0), InstanceId(0));
        let reasons = [
            WaitReason::Behind { jobs: 3 },
            WaitReason::SlotsBusy,
            WaitReason::SlotsReserved,
            WaitReason::InteractiveMode { device, guard_at: Some(Time::from_nanos(5)) },
            WaitReason::InteractiveMode { device, guard_at: None },
            WaitReason::HigherClass { device },
            WaitReason::BatchHeld { until: Time::from_nanos(5) },
            WaitReason::Loading { instance },
            WaitReason::Draining { instance },
            WaitReason::NotLoaded,
            WaitReason::FreeingMemory { device, missing: Bytes::from_mib(5) },
            WaitReason::LoadSlotBusy { device },
            WaitReason::InteractiveLoadFirst { device },
            WaitReason::NoRoom { device, until: Some(Time::from_nanos(5)) },
            WaitReason::NoRoom { device, until: None },
            WaitReason::ForeignMemory { device, used: Bytes::from_mib(5) },
            WaitReason::BackOff { until: Time::from_nanos(5) },
            WaitReason::MonitorStale { device },
            WaitReason::Pressure { device, level: PressureLevel::Warn },
            WaitReason::LoadsPaused { device, until: Time::from_nanos(5) },
            WaitReason::LoadFirst { device },
        ];
        let refusals = [
            Refusal::QueueFull { limit: 1 },
            Refusal::DeadlineUnreachable { predicted: Time::ZERO, retry_after: Span::ZERO },
            Refusal::UnknownModel,
            Refusal::NoSuchVariant,
            Refusal::TooLarge { limit: 1 },
            Refusal::Malformed,
            Refusal::Broken { retry_after: Span::ZERO },
            Refusal::CannotFit { needs: Bytes::ZERO, room: Bytes::ZERO },
        ];
        let texts = reasons.map(|reason| waits(reason, &Names::default(), Time::ZERO)).into_iter();
        for text in texts.chain(refusals.map(|one| refusal(one, Time::ZERO))) {
            assert!(text.split_whitespace().all(|word| !WORDS.contains(&word)), "{text}");
        }
    }
}
