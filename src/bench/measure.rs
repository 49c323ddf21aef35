//! One model after another: load it, ask it questions of known size, read the runtime's times off the answers, let it go.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use windtunnel_live::operator::{AskError, ModelOrder, Operator, Resident, Wording};
use windtunnel_sim::Control;

use super::fit::{Line, Point, line};
use crate::failure::Failure;

/// What is asked of each model.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Tokens of the longest prompt, and of every input of a batch.
    pub prompt_tokens: u32,
    /// Tokens of an answer.
    pub output_tokens: u32,
    /// How often each question is asked.
    pub rounds: u32,
}

/// How far it has come, in millionths, for whoever shows it.
pub struct Pulse<'a> {
    pub millionths: &'a AtomicU64,
    pub models: u64,
}

/// Asks one daemon.
pub struct Bench<'a> {
    /// Makes another client of it; each has a thread of its own.
    pub client: &'a (dyn Fn() -> Result<Operator, Failure> + Sync),
    pub plan: Plan,
    pub control: &'a Control,
    pub pulse: Pulse<'a>,
    /// No load takes longer.
    pub start_limit: Duration,
    /// No end of a process takes longer.
    pub stop_limit: Duration,
}

/// What was measured of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    pub model: String,
    /// `None`: it was loaded already.
    pub load: Option<Duration>,
    /// Bytes that were set aside for it before it was loaded; `None`: it was loaded already.
    pub estimated: Option<u64>,
    /// Bytes that it holds.
    pub holds: u64,
    pub service: Service,
}

/// How fast it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Service {
    /// Generations side by side.
    Slots {
        slots: u32,
        /// Time by tokens of a prompt.
        prefill: Vec<Point>,
        /// Time of a token by generations side by side.
        decode: Vec<Point>,
        prefill_line: Line,
        decode_line: Line,
    },
    /// Inputs at a time.
    Batch {
        /// Time by inputs.
        inputs: Vec<Point>,
        line: Line,
    },
}

/// How often a daemon is asked whether a load has ended.
const POLL: Duration = Duration::from_millis(20);
/// After an order, a load begins within so long or not at all.
const BEGINS: Duration = Duration::from_secs(20);
/// Inputs of the largest batch that is asked for: a daemon cuts larger ones into steps.
const MOST_INPUTS: u32 = 32;

impl Bench<'_> {
    /// Measures one model; the place of it among all says how far the whole has come. However that ends, it is in memory
    /// afterwards only if it was before.
    pub fn model(&self, name: &str, place: u64) -> Result<Measured, Failure> {
        let client = (self.client)()?;
        if loaded(&client, name)?.is_some_and(|one| one.stage == "ready") {
            let (holds, service) = self.loaded(&client, name, place)?;
            return Ok(Measured { model: name.to_owned(), load: None, estimated: None, holds, service });
        }
        let measured = self.load(&client, name).and_then(|load| Ok((load, self.loaded(&client, name, place)?)));
        let unloaded = self.unload(&client, name);
        // What went wrong first says more.
        let ((load, estimated), (holds, service)) = measured?;
        unloaded?;
        self.tick(place, PARTS);
        Ok(Measured { model: name.to_owned(), load: Some(load), estimated, holds, service })
    }

    /// Measures a model that is in memory: what it holds, and how fast it is.
    fn loaded(&self, client: &Operator, name: &str, place: u64) -> Result<(u64, Service), Failure> {
        self.tick(place, 1);
        let resident = loaded(client, name)?.ok_or_else(|| gone(name))?;
        let service = if generates(client, name)? {
            self.slots(client, name, place, resident.running.saturating_add(resident.free).max(1))?
        } else {
            self.batch(client, name, place)?
        };
        Ok((loaded(client, name)?.ok_or_else(|| gone(name))?.booked, service))
    }

    fn load(&self, client: &Operator, name: &str) -> Result<(Duration, Option<u64>), Failure> {
        let began = Instant::now();
        let mut estimated = None;
        client.order(name, ModelOrder::Load)?;
        loop {
            self.unless_interrupted()?;
            match loaded(client, name)? {
                Some(one) if one.stage == "ready" => {
                    return Ok((began.elapsed(), estimated.or(Some(one.booked))));
                }
                Some(one) => estimated = estimated.or(Some(one.booked)),
                None if estimated.is_some() || began.elapsed() > BEGINS => return Err(not_loaded(client, name)),
                None => {}
            }
            if began.elapsed() > self.start_limit {
                return Err(not_loaded(client, name));
            }
            thread::sleep(POLL);
        }
    }

    fn unload(&self, client: &Operator, name: &str) -> Result<(), Failure> {
        client.order(name, ModelOrder::Unload)?;
        let until = Instant::now() + self.stop_limit;
        while loaded(client, name)?.is_some() {
            self.unless_interrupted()?;
            if Instant::now() > until {
                let limit = self.stop_limit;
                return Err(Failure::NoAnswer(format!("{name} is still in memory {limit:?} after it was asked to go")));
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    fn slots(&self, client: &Operator, name: &str, place: u64, slots: u32) -> Result<Service, Failure> {
        let Plan { prompt_tokens, output_tokens, rounds } = self.plan;
        let mut seeds = Seeds::new(name);
        // The first question warms up what is only made when it is needed.
        ask(client, name, 8, 4, seeds.next())?;
        let mut prefill = Vec::new();
        for tokens in [prompt_tokens.div_ceil(8), prompt_tokens.div_ceil(2), prompt_tokens] {
            for _ in 0..rounds {
                self.unless_interrupted()?;
                prefill.push(ask(client, name, tokens, 2, seeds.next())?.prefill()?);
            }
        }
        self.tick(place, 2);
        let mut decode = Vec::new();
        let sizes = doubling(slots);
        for (at, &at_once) in sizes.iter().enumerate() {
            for _ in 0..rounds {
                self.unless_interrupted()?;
                let answers = self.side_by_side(name, at_once, output_tokens, &mut seeds)?;
                decode.push(Point { size: f64::from(at_once), millis: mean(&answers) });
            }
            self.tick(place, 3 + (at as u64 * (PARTS - 3)) / sizes.len() as u64);
        }
        let (prefill_line, decode_line) = (line(&prefill), line(&decode));
        Ok(Service::Slots { slots, prefill, decode, prefill_line, decode_line })
    }

    /// Milliseconds a token of each of so many generations that run together.
    fn side_by_side(&self, name: &str, count: u32, tokens: u32, seeds: &mut Seeds) -> Result<Vec<f64>, Failure> {
        let seeds: Vec<u64> = (0..count).map(|_| seeds.next()).collect();
        thread::scope(|scope| {
            let threads: Vec<_> = seeds
                .into_iter()
                .map(|seed| scope.spawn(move || ask(&(self.client)()?, name, 8, tokens, seed)?.token()))
                .collect();
            let broken = || Failure::NoAnswer("a thread that asked broke down".to_owned());
            threads.into_iter().map(|thread| thread.join().map_err(|_| broken())?).collect()
        })
    }

    /// Answers to embeddings carry no times, so these are of the whole request, as the daemon's client sees it.
    fn batch(&self, client: &Operator, name: &str, place: u64) -> Result<Service, Failure> {
        let mut seeds = Seeds::new(name);
        embed(client, name, 1, 8, seeds.next())?;
        let sizes = doubling(MOST_INPUTS);
        let mut inputs = Vec::new();
        for (at, &count) in sizes.iter().enumerate() {
            let mut times = Vec::new();
            for _ in 0..self.plan.rounds.max(3) {
                self.unless_interrupted()?;
                times.push(embed(client, name, count, self.plan.prompt_tokens.min(128), seeds.next())?);
            }
            inputs.push(Point { size: f64::from(count), millis: median(times) });
            self.tick(place, 2 + (at as u64 * (PARTS - 2)) / sizes.len() as u64);
        }
        let line = line(&inputs);
        Ok(Service::Batch { inputs, line })
    }

    fn unless_interrupted(&self) -> Result<(), Failure> {
        match self.control.is_interrupted() {
            true => Err(Failure::Interrupted("what was learned of models before is kept".to_owned())),
            false => Ok(()),
        }
    }

    fn tick(&self, place: u64, part: u64) {
        let all = (self.pulse.models * PARTS).max(1);
        self.pulse.millionths.store((place * PARTS + part) * 1_000_000 / all, Ordering::Relaxed);
    }
}

/// Parts of the work on a model that progress is told of.
const PARTS: u64 = 16;

fn loaded(client: &Operator, name: &str) -> Result<Option<Resident>, Failure> {
    let status = client.status()?;
    let mut residents = status.devices.into_iter().flat_map(|device| device.residents);
    Ok(residents.find(|one| one.model == name))
}

/// Why a load did not end as it should: the daemon's last lines about the model say.
fn not_loaded(client: &Operator, name: &str) -> Failure {
    let lines = client.events(0).map(|events| events.lines).unwrap_or_default();
    let about: Vec<&str> = lines.iter().map(String::as_str).filter(|line| line.contains(name)).collect();
    let last = about.iter().skip(about.len().saturating_sub(5)).map(|line| format!("\n  {line}")).collect::<String>();
    Failure::NoAnswer(format!("{name} could not be loaded; the daemon's last lines about it:{last}"))
}

fn gone(name: &str) -> Failure {
    Failure::NoAnswer(format!("{name} left memory while it was measured; see `windtunnel status`"))
}

/// Whether it generates text; models for vectors and scores refuse to.
fn generates(client: &Operator, name: &str) -> Result<bool, Failure> {
    match client.question("/v1/chat/completions", &chat(name, 8, 1, 0)) {
        Ok(_) => Ok(true),
        Err(AskError::Refused { status: 400 | 404 | 500 | 501, .. }) => Ok(false),
        Err(
            wrong @ (AskError::Refused { .. }
            | AskError::Silent { .. }
            | AskError::Late { .. }
            | AskError::Foreign { .. }),
        ) => Err(wrong.into()),
    }
}

/// What the runtime says of its answer.
struct Answered {
    prompt: Option<(f64, f64)>,
    predicted: Option<(f64, f64)>,
}

impl Answered {
    fn prefill(&self) -> Result<Point, Failure> {
        self.prompt.map(|(size, millis)| Point { size, millis }).ok_or_else(untold)
    }

    /// Milliseconds of a token: the first comes with the end of the prompt.
    fn token(&self) -> Result<f64, Failure> {
        let (tokens, millis) = self.predicted.filter(|(tokens, _)| *tokens > 1.0).ok_or_else(untold)?;
        Ok(millis / (tokens - 1.0))
    }
}

fn untold() -> Failure {
    Failure::NoAnswer("the runtime's answers carry no `timings`, as those of a llama-server do".to_owned())
}

fn ask(client: &Operator, name: &str, prompt: u32, output: u32, seed: u64) -> Result<Answered, Failure> {
    let answer = client.question("/v1/chat/completions", &chat(name, prompt, output, seed))?;
    let timings = &answer["timings"];
    let pair = |count: &str, millis: &str| Some((timings[count].as_f64()?, timings[millis].as_f64()?));
    Ok(Answered { prompt: pair("prompt_n", "prompt_ms"), predicted: pair("predicted_n", "predicted_ms") })
}

/// Words that no prompt cache knows.
fn chat(name: &str, prompt: u32, output: u32, seed: u64) -> Value {
    let content = Wording::new(seed).text(prompt);
    json!({
        "model": name, "messages": [{"role": "user", "content": content}], "max_tokens": output, "ignore_eos": true,
        "cache_prompt": false,
    })
}

/// Milliseconds of a request for so many vectors.
fn embed(client: &Operator, name: &str, inputs: u32, tokens: u32, seed: u64) -> Result<f64, Failure> {
    let mut wording = Wording::new(seed);
    let texts: Vec<String> = (0..inputs).map(|_| wording.text(tokens)).collect();
    let began = Instant::now();
    client.question("/v1/embeddings", &json!({ "model": name, "input": texts }))?;
    Ok(began.elapsed().as_secs_f64() * 1e3)
}

/// Different words for every question of every run.
struct Seeds(u64);

impl Seeds {
    fn new(name: &str) -> Seeds {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Seeds(
            name.bytes().fold(now.as_nanos() as u64, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte))),
        )
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0
    }
}

/// 1, 2, 4 and so on, up to and with `most`.
fn doubling(most: u32) -> Vec<u32> {
    let mut sizes: Vec<u32> = (0..32).map(|power| 1 << power).take_while(|size| *size < most).collect();
    sizes.push(most);
    sizes
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / (values.len().max(1) as f64)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests;
