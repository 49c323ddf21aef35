//! What waits, and until when. Knows no clock and nothing of connections.

use tokio::time::Instant;

/// A few things, each of which may be taken until its time is over.
#[derive(Debug)]
pub(super) struct Shelf<T> {
    idle: Vec<Idle<T>>,
    most: usize,
    /// Whether somebody calls [`Shelf::sweep`] when the first time is over.
    is_swept: bool,
}

#[derive(Debug)]
struct Idle<T> {
    thing: T,
    until: Instant,
}

/// What became of something that was put there.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Put<T> {
    /// It waits, and somebody has to sweep from now on.
    First,
    /// It waits.
    Beside,
    /// There is no room.
    Refused(T),
}

impl<T> Shelf<T> {
    pub fn new(most: usize) -> Shelf<T> {
        Shelf { idle: Vec::new(), most, is_swept: false }
    }

    pub fn put(&mut self, thing: T, until: Instant) -> Put<T> {
        if self.idle.len() >= self.most {
            return Put::Refused(thing);
        }
        self.idle.push(Idle { thing, until });
        if std::mem::replace(&mut self.is_swept, true) { Put::Beside } else { Put::First }
    }

    /// The one that came last, so that in quiet times the others are let go.
    pub fn take(&mut self, now: Instant) -> Option<T> {
        while let Some(idle) = self.idle.pop() {
            if now < idle.until {
                return Some(idle.thing);
            }
        }
        None
    }

    /// Drops those whose time is over; when to come again, if any are left.
    pub fn sweep(&mut self, now: Instant) -> Option<Instant> {
        self.idle.retain(|idle| now < idle.until);
        let next = self.idle.iter().map(|idle| idle.until).min();
        self.is_swept = next.is_some();
        next
    }

    /// Has room for nothing from now on; gives out what waits.
    pub fn close(&mut self) -> Vec<T> {
        self.most = 0;
        self.idle.drain(..).map(|idle| idle.thing).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn nothing_is_taken_whose_time_is_over() {
        let now = Instant::now();
        let mut shelf = Shelf::new(4);
        assert_eq!(shelf.put('a', now + SECOND), Put::First);
        assert_eq!(shelf.put('b', now + SECOND), Put::Beside);
        assert_eq!(shelf.take(now), Some('b'), "the last one first");
        assert_eq!(shelf.take(now + SECOND), None);
        assert_eq!(shelf.take(now), None, "it is gone for good");
    }

    #[test]
    fn what_waits_is_swept_by_one_at_a_time_until_none_is_left() {
        let now = Instant::now();
        let mut shelf = Shelf::new(4);
        assert_eq!(shelf.put('a', now + 3 * SECOND), Put::First);
        assert_eq!(shelf.put('b', now + SECOND), Put::Beside);
        assert_eq!(shelf.sweep(now), Some(now + SECOND));
        assert_eq!(shelf.sweep(now + SECOND), Some(now + 3 * SECOND));
        assert_eq!(shelf.take(now + SECOND), Some('a'));
        assert_eq!(shelf.put('c', now + 5 * SECOND), Put::Beside, "who sweeps comes again");
        assert_eq!(shelf.sweep(now + 3 * SECOND), Some(now + 5 * SECOND));
        assert_eq!(shelf.sweep(now + 5 * SECOND), None);
        assert_eq!(shelf.put('d', now + 9 * SECOND), Put::First);
    }

    #[test]
    fn there_is_room_for_so_many_and_for_none_once_it_is_closed() {
        let until = Instant::now() + SECOND;
        let mut shelf = Shelf::new(1);
        assert_eq!(shelf.put('a', until), Put::First);
        assert_eq!(shelf.put('b', until), Put::Refused('b'));
        assert_eq!(shelf.close(), ['a']);
        assert_eq!(shelf.put('c', until), Put::Refused('c'));
    }
}
