//! Writes a journal as a run goes on.

use std::io::{self, BufWriter, Write};

use serde::Serialize;
use windtunnel_core::{Checkpoint, Effect, Effects, GrantedStep, Input, Time};

use super::record::{End, Header, Record};
use crate::Recorder;

/// A recorder that writes JSON Lines through a buffer of its own; several runs may follow one another.
#[derive(Debug)]
pub struct JournalWriter<W: Write> {
    out: BufWriter<W>,
    line: Vec<u8>,
}

/// A [`Record`] that borrows what it holds.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Line<'a> {
    Header(&'a Header),
    Input { t: Time, input: &'a Input },
    Effect { t: Time, effect: Effect<&'a [GrantedStep]> },
    Checkpoint { t: Time, state: &'a Checkpoint },
    Gap { t: Time, lines: Option<u64> },
    End(&'a End),
}

impl<W: Write> JournalWriter<W> {
    /// A journal that goes to `out`.
    pub fn new(out: W) -> JournalWriter<W> {
        JournalWriter { out: BufWriter::with_capacity(1 << 16, out), line: Vec::new() }
    }

    /// Says that lines are missing from `t` on; a checkpoint should follow.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn gap(&mut self, t: Time, lines: Option<u64>) -> io::Result<()> {
        self.put(&Line::Gap { t, lines })
    }

    /// Writes a record as it stands, for whoever has records and no scheduler.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn record(&mut self, record: &Record) -> io::Result<()> {
        self.put(record)
    }

    /// Hands what was buffered to what it is written to.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// What everything is written to; it may lack what is buffered.
    pub fn get_mut(&mut self) -> &mut W {
        self.out.get_mut()
    }

    /// What everything was written to, after the last of it.
    ///
    /// # Errors
    /// When the last of it cannot be written.
    pub fn into_inner(self) -> io::Result<W> {
        self.out.into_inner().map_err(io::IntoInnerError::into_error)
    }

    fn put(&mut self, line: &impl Serialize) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, line)?;
        self.line.push(b'\n');
        self.out.write_all(&self.line)
    }
}

impl<W: Write> Recorder for JournalWriter<W> {
    fn begin(&mut self, header: &Header) -> io::Result<()> {
        self.put(&Line::Header(header))
    }

    fn step(&mut self, t: Time, input: &Input, effects: &Effects) -> io::Result<()> {
        self.put(&Line::Input { t, input })?;
        for effect in effects {
            let effect = effect.map_steps(|range| effects.steps(range));
            self.put(&Line::Effect { t, effect })?;
        }
        Ok(())
    }

    fn checkpoint(&mut self, t: Time, state: &Checkpoint) -> io::Result<()> {
        self.put(&Line::Checkpoint { t, state })
    }

    fn end(&mut self, end: &End) -> io::Result<()> {
        self.put(&Line::End(end))?;
        self.out.flush()
    }
}
