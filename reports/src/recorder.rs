//! Where records go: whoever drives the scheduler hands every input and its effects to a recorder, once and in order.

use std::io;

use windtunnel_core::{Checkpoint, Effects, Input, Time};

use crate::journal::{End, Header};

/// Something that takes a run in as it happens: a header, then every step of the scheduler, then the end. One recorder may
/// be given several runs one after another.
pub trait Recorder {
    /// A run begins.
    ///
    /// # Errors
    /// When the recorder cannot keep what it is given; the run should stop.
    fn begin(&mut self, header: &Header) -> io::Result<()>;

    /// The scheduler was told `input` at `t` and wanted `effects`.
    ///
    /// # Errors
    /// As for [`Recorder::begin`].
    fn step(&mut self, t: Time, input: &Input, effects: &Effects) -> io::Result<()>;

    /// Whether it reads why new interactive jobs wait; otherwise nobody has to find that out.
    fn reads_reasons(&self) -> bool {
        true
    }

    /// The scheduler's whole state after the last step.
    ///
    /// # Errors
    /// As for [`Recorder::begin`].
    fn checkpoint(&mut self, _t: Time, _state: &Checkpoint) -> io::Result<()> {
        Ok(())
    }

    /// The run ended.
    ///
    /// # Errors
    /// As for [`Recorder::begin`].
    fn end(&mut self, end: &End) -> io::Result<()>;
}

/// Keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRecord;

/// Gives everything to both, first to the first.
#[derive(Clone, Debug, Default)]
pub struct Tee<A, B>(pub A, pub B);

impl Recorder for NoRecord {
    fn begin(&mut self, _header: &Header) -> io::Result<()> {
        Ok(())
    }

    #[inline]
    fn step(&mut self, _t: Time, _input: &Input, _effects: &Effects) -> io::Result<()> {
        Ok(())
    }

    fn reads_reasons(&self) -> bool {
        false
    }

    fn end(&mut self, _end: &End) -> io::Result<()> {
        Ok(())
    }
}

impl<A: Recorder, B: Recorder> Recorder for Tee<A, B> {
    fn begin(&mut self, header: &Header) -> io::Result<()> {
        self.0.begin(header)?;
        self.1.begin(header)
    }

    #[inline]
    fn step(&mut self, t: Time, input: &Input, effects: &Effects) -> io::Result<()> {
        self.0.step(t, input, effects)?;
        self.1.step(t, input, effects)
    }

    fn reads_reasons(&self) -> bool {
        self.0.reads_reasons() || self.1.reads_reasons()
    }

    fn checkpoint(&mut self, t: Time, state: &Checkpoint) -> io::Result<()> {
        self.0.checkpoint(t, state)?;
        self.1.checkpoint(t, state)
    }

    fn end(&mut self, end: &End) -> io::Result<()> {
        self.0.end(end)?;
        self.1.end(end)
    }
}

impl<R: Recorder + ?Sized> Recorder for &mut R {
    fn begin(&mut self, header: &Header) -> io::Result<()> {
        (**self).begin(header)
    }

    #[inline]
    fn step(&mut self, t: Time, input: &Input, effects: &Effects) -> io::Result<()> {
        (**self).step(t, input, effects)
    }

    fn reads_reasons(&self) -> bool {
        (**self).reads_reasons()
    }

    fn checkpoint(&mut self, t: Time, state: &Checkpoint) -> io::Result<()> {
        (**self).checkpoint(t, state)
    }

    fn end(&mut self, end: &End) -> io::Result<()> {
        (**self).end(end)
    }
}

/// Keeps nothing when there is none.
impl<R: Recorder> Recorder for Option<R> {
    fn begin(&mut self, header: &Header) -> io::Result<()> {
        self.as_mut().map_or(Ok(()), |recorder| recorder.begin(header))
    }

    #[inline]
    fn step(&mut self, t: Time, input: &Input, effects: &Effects) -> io::Result<()> {
        self.as_mut().map_or(Ok(()), |recorder| recorder.step(t, input, effects))
    }

    fn reads_reasons(&self) -> bool {
        self.as_ref().is_some_and(Recorder::reads_reasons)
    }

    fn checkpoint(&mut self, t: Time, state: &Checkpoint) -> io::Result<()> {
        self.as_mut().map_or(Ok(()), |recorder| recorder.checkpoint(t, state))
    }

    fn end(&mut self, end: &End) -> io::Result<()> {
        self.as_mut().map_or(Ok(()), |recorder| recorder.end(end))
    }
}
