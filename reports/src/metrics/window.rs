//! The window in which things count, and the stretches it is cut into, as time goes over their ends.

use super::{RunMetrics, stretch::OUTSIDE};

/// The latest moment there is; so there is always one after it.
pub(super) const LAST: u64 = u64::MAX - 1;

impl RunMetrics {
    /// Time goes on to `t`, never back.
    #[inline]
    pub(super) fn advance(&mut self, t: u64) {
        if t >= self.boundary {
            self.cross(t.min(LAST));
        }
        self.now = self.now.max(t.min(LAST));
    }

    /// Goes over every boundary up to `t`.
    #[cold]
    fn cross(&mut self, t: u64) {
        while self.grid.outgrown(t.min(self.close_at)) {
            // What is under way in the stretch that lasts is of the stretch that it becomes a part of.
            self.grid.double();
            self.flows.halve();
            self.crowd.halve();
            self.service.halve();
            self.look_again();
        }
        while self.boundary <= t {
            let last = self.boundary.min(self.close_at);
            let point = self.grid.point(self.now);
            self.now = last.max(self.now);
            if self.boundary > self.close_at {
                self.close_window(point);
                return;
            }
            self.crowd.close_point(point, self.now);
            if let Some(stretch) = self.counting
                && stretch != self.grid.stretch(last)
            {
                self.close_stretch(stretch);
            }
            self.look_again();
        }
    }

    fn look_again(&mut self) {
        self.counting = Some(self.grid.stretch(self.now));
        self.boundary = self.grid.next_boundary(self.now).min(self.close_at + 1);
    }

    /// Nothing that happens from now on counts for rates and shares of time.
    fn close_window(&mut self, point: Option<usize>) {
        self.crowd.close_point(point, self.now);
        if let Some(stretch) = self.counting.take() {
            self.close_stretch(stretch);
        }
        self.close_at = self.now;
        self.boundary = u64::MAX;
    }

    fn close_stretch(&mut self, stretch: usize) {
        self.flows.close_stretch(stretch);
        self.service.close_stretch(self.now, stretch);
        self.crowd.close_stretch(stretch, self.now);
    }

    /// No more jobs will arrive: the window ends with this instant.
    pub(super) fn last_arrival(&mut self) {
        self.close_at = self.close_at.min(self.now);
        self.boundary = self.boundary.min(self.close_at + 1);
    }

    /// The run is over at `t`.
    pub(super) fn stop(&mut self, t: u64) {
        self.advance(t);
        if self.counting.is_some() {
            let point = self.grid.point(self.now);
            self.close_window(point);
        }
    }

    /// Where a job counts that arrived then.
    #[inline]
    pub(super) fn stretch_of(&self, arrived: u64) -> usize {
        if self.counting.is_none() && arrived > self.close_at { OUTSIDE } else { self.grid.stretch(arrived) }
    }
}
