//! Stochastic bisection: the highest rate at which a metric still meets its target.
//!
//! Every probe doubles its replications until its interval lies wholly on one side of the target, up to a most. The
//! search ends when the highest rate that passed and the lowest that failed are close enough, or at a rate that stays
//! undecided: closer than that the noise does not let one see. The ends of the answer are then run again with fresh
//! seeds, since the best of several noisy probes flatters itself; an end that does not hold is moved outwards, doubling
//! the distance, until one holds.
//!
//! The metric is taken to get worse as the rate rises. Where it does not, the answer is one of its crossings.

use super::report::{Bracket, Confirmation, ProbeRecord, SeedSet, Shape, TargetKnee};
use super::verdict::{Limit, Measurement, Stability, Verdict};

/// Whoever can measure the metric at a rate.
pub trait Probe {
    /// Why it may be unable to, such as an interruption.
    type Error;

    /// Measures the metric over replications `0..replications` of `seeds` at `rate`. Asked again for more at the same
    /// rate and seeds, it need only run those that are new. The same replication draws the same random numbers at every
    /// rate.
    ///
    /// # Errors
    /// When it cannot; the search ends with the same error.
    fn measure(&mut self, rate: f64, seeds: SeedSet, replications: u32) -> Result<Measurement, Self::Error>;
}

/// What to look for, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// The metric, by its dotted name.
    pub metric: String,
    /// What it has to keep to.
    pub limit: Limit,
    /// A rate that should pass, above 0. If it does not, lower ones are tried.
    pub from: f64,
    /// A rate that should fail, above `from`. If it does not, higher ones are tried.
    pub to: f64,
    /// The search ends when the lowest failing rate is at most this share above the highest passing one.
    pub precision: f64,
    /// Replications of a probe to begin with, at least 2.
    pub replications: u32,
    /// Replications after which a probe is undecided.
    pub most_replications: u32,
}

/// How often the first rates are halved, or doubled, until one passes, or fails.
const HALVINGS: u32 = 6;
const DOUBLINGS: u32 = 3;

/// How often the distance of an end that does not hold is doubled.
const WIDENINGS: u32 = 5;

/// From this elasticity on (relative change of the metric over relative change of the rate) a crossing is a cliff. An
/// M/M/1 queue has it at 98% of its capacity.
const CLIFF_ELASTICITY: f64 = 50.0;

impl Search {
    /// A search at 1%, with 10 to 40 replications.
    pub fn new(metric: impl Into<String>, limit: Limit, from: f64, to: f64) -> Search {
        Search { metric: metric.into(), limit, from, to, precision: 0.01, replications: 10, most_replications: 40 }
    }

    /// Carries the search out.
    ///
    /// # Errors
    /// The first error of the probe.
    pub fn run<P: Probe>(&self, probe: &mut P) -> Result<TargetKnee, P::Error> {
        let mut hunt = Hunt { search: self, probe, records: Vec::new() };
        let found = hunt.bisect()?;
        let ends = hunt.confirm(found)?;
        Ok(self.answer(found, ends, hunt.records))
    }

    fn answer(&self, found: Found, ends: Ends, probes: Vec<ProbeRecord>) -> TargetKnee {
        TargetKnee {
            metric: self.metric.clone(),
            limit: self.limit,
            rate: Bracket {
                mean: self.best_guess(found, ends),
                low: ends.low.map(|end| end.rate),
                high: ends.high.map(|end| end.rate),
            },
            shape: ends.shape(),
            confirmation: ends.confirmation,
            undecided: found.undecided,
            probes,
        }
    }

    /// The undecided rate is as good a guess as any; else the metric's own way across the bracket, which says nothing
    /// where it jumps.
    fn best_guess(&self, found: Found, ends: Ends) -> Option<f64> {
        let (low, high) = (ends.low?, ends.high?);
        if let Some(undecided) = found.undecided {
            return Some(undecided);
        }
        let middle = (low.rate * high.rate).sqrt();
        match (ends.shape(), low.value, high.value) {
            (Shape::Smooth, Some(below), Some(above)) if below > 0.0 && above > 0.0 && below != above => {
                let share = (self.limit.value() / below).ln() / (above / below).ln();
                Some(low.rate * (high.rate / low.rate).powf(share.clamp(0.0, 1.0)))
            }
            _ => Some(middle),
        }
    }
}

/// A rate that was judged.
#[derive(Clone, Copy)]
struct End {
    rate: f64,
    value: Option<f64>,
    stability: Stability,
}

/// Where the bisection ended.
#[derive(Clone, Copy, Default)]
struct Found {
    low: Option<f64>,
    high: Option<f64>,
    undecided: Option<f64>,
}

/// The bracket after its second run.
#[derive(Clone, Copy)]
struct Ends {
    low: Option<End>,
    high: Option<End>,
    confirmation: Confirmation,
}

impl Found {
    fn note(&mut self, rate: f64, verdict: Verdict) {
        match verdict {
            Verdict::Pass => self.low = Some(rate),
            Verdict::Fail => self.high = Some(rate),
            Verdict::Undecided => self.undecided = Some(rate),
        }
    }
}

impl Ends {
    fn shape(&self) -> Shape {
        let (Some(low), Some(high)) = (self.low, self.high) else {
            return Shape::NotBracketed;
        };
        let (Stability::Stable, Some(below), Some(above)) = (high.stability, low.value, high.value) else {
            return Shape::Cliff;
        };
        let elasticity = (above / below).ln().abs() / (high.rate / low.rate).ln();
        if elasticity < CLIFF_ELASTICITY { Shape::Smooth } else { Shape::Cliff }
    }
}

struct Hunt<'a, P> {
    search: &'a Search,
    probe: &'a mut P,
    records: Vec<ProbeRecord>,
}

impl<P: Probe> Hunt<'_, P> {
    fn bisect(&mut self) -> Result<Found, P::Error> {
        let mut found = Found::default();
        self.look_for_low(&mut found)?;
        self.look_for_high(&mut found)?;
        while let (Some(low), Some(high), None) = (found.low, found.high, found.undecided) {
            if high <= low * (1.0 + self.search.precision) {
                break;
            }
            let rate = (low * high).sqrt();
            let (verdict, _) = self.judge(rate, SeedSet::Search)?;
            found.note(rate, verdict);
        }
        Ok(found)
    }

    fn look_for_low(&mut self, found: &mut Found) -> Result<(), P::Error> {
        for halving in 0..=HALVINGS {
            let rate = self.search.from * 0.5_f64.powi(halving as i32);
            let (verdict, _) = self.judge(rate, SeedSet::Search)?;
            found.note(rate, verdict);
            if verdict != Verdict::Fail {
                break;
            }
        }
        Ok(())
    }

    fn look_for_high(&mut self, found: &mut Found) -> Result<(), P::Error> {
        if found.low.is_none() {
            return Ok(());
        }
        for doubling in 0..=DOUBLINGS {
            if found.high.is_some() || found.undecided.is_some() {
                break;
            }
            let rate = self.search.to * 2.0_f64.powi(doubling as i32);
            let (verdict, _) = self.judge(rate, SeedSet::Search)?;
            found.note(rate, verdict);
        }
        Ok(())
    }

    /// Runs both ends again. Around an undecided rate the ends to begin with are one precision away: that is where the
    /// search would have ended had it been able to see.
    fn confirm(&mut self, found: Found) -> Result<Ends, P::Error> {
        let (mut low_start, mut high_start) = (found.low, found.high);
        if let Some(undecided) = found.undecided {
            low_start = Some(undecided);
            high_start = Some(undecided);
        }
        let first = if found.undecided.is_some() { 1 } else { 0 };
        let (low, low_moved) = self.confirm_end(low_start, -1.0, first, Verdict::Pass)?;
        let (high, high_moved) = self.confirm_end(high_start, 1.0, first, Verdict::Fail)?;
        let lost = (low_start.is_some() && low.is_none()) || (high_start.is_some() && high.is_none());
        let confirmation = match (low_start.or(high_start), lost, low_moved || high_moved) {
            (None, _, _) => Confirmation::Nothing,
            (Some(_), true, _) => Confirmation::Contradicted,
            (Some(_), false, true) => Confirmation::Widened,
            (Some(_), false, false) => Confirmation::Confirmed,
        };
        Ok(Ends { low, high, confirmation })
    }

    /// The first rate, going outwards from `start` in the direction of `sign`, that gets the verdict `wanted`, and
    /// whether it took more than the rate begun with.
    fn confirm_end(
        &mut self,
        start: Option<f64>,
        sign: f64,
        first: u32,
        wanted: Verdict,
    ) -> Result<(Option<End>, bool), P::Error> {
        let Some(start) = start else {
            return Ok((None, false));
        };
        for step in first..=first + WIDENINGS {
            let distance = if step == 0 { 0.0 } else { self.search.precision * 2.0_f64.powi(step as i32 - 1) };
            let rate = start * (1.0 + sign * distance);
            let (verdict, end) = self.judge(rate, SeedSet::Fresh)?;
            if verdict == wanted {
                return Ok((Some(end), step > first));
            }
        }
        Ok((None, true))
    }

    fn judge(&mut self, rate: f64, seeds: SeedSet) -> Result<(Verdict, End), P::Error> {
        let most = self.search.most_replications.max(2);
        let mut replications = self.search.replications.clamp(2, most);
        loop {
            let measured = self.probe.measure(rate, seeds, replications)?;
            let verdict = measured.judge(self.search.limit);
            if verdict != Verdict::Undecided || replications == most {
                self.records.push(record(rate, seeds, replications, &measured, verdict));
                return Ok((verdict, End { rate, value: measured.pooled, stability: measured.stability }));
            }
            replications = (replications * 2).min(most);
        }
    }
}

fn record(rate: f64, seeds: SeedSet, replications: u32, measured: &Measurement, verdict: Verdict) -> ProbeRecord {
    let interval = measured.interval();
    ProbeRecord {
        rate,
        seeds,
        replications,
        value: measured.pooled,
        low: interval.map(|(low, _)| low),
        high: interval.map(|(_, high)| high),
        verdict,
    }
}
