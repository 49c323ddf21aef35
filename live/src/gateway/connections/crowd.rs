//! The connections that are open: as many as there may be, and if one more comes, the one that has rested longest goes.
//!
//! A few places are kept from work for models, which may last long: whoever asks how the daemon fares, or gives it an order, gets
//! in however much work there is.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Places that work never takes, where there are enough.
const SPARE: usize = 16;

/// Everybody who is connected.
#[derive(Debug)]
pub(super) struct Crowd {
    most: usize,
    most_working: usize,
    /// Goes off when everybody is to go.
    closing: CancellationToken,
    state: Mutex<State>,
    /// Somebody left, or rests.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    open: usize,
    /// Those with work under way.
    working: usize,
    /// Those that were asked to go, have not gone, and are about to.
    leaving: usize,
    /// Counts on: a larger number began to rest later.
    next: u64,
    /// Those without a request under way, by when they began to rest.
    resting: BTreeMap<u64, CancellationToken>,
}

/// A connection that counts, until it is dropped.
#[derive(Debug)]
pub(super) struct Guest {
    crowd: Arc<Crowd>,
    /// Goes off when it is to make room, or everybody is to go.
    pub leave: CancellationToken,
    place: Mutex<Place>,
}

/// What a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Resting(u64),
    /// A request is under way.
    Busy,
    /// It goes, and nobody waits for that: its last request is over, or it takes its time.
    Leaving,
}

/// A request under way.
#[derive(Debug)]
pub(in crate::gateway) struct Visit {
    guest: Arc<Guest>,
    works: bool,
}

/// All places for work are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) struct Crowded;

impl Crowd {
    /// Nobody yet, and never more than `most`.
    pub(super) fn new(most: usize) -> Arc<Crowd> {
        let most = most.max(1);
        let most_working = most - SPARE.min(most / 4);
        let (closing, state) = (CancellationToken::new(), Mutex::default());
        Arc::new(Crowd { most, most_working, closing, state, changed: Notify::new() })
    }

    /// Waits until there is room for one more, and makes some.
    pub(super) async fn admit(self: &Arc<Crowd>) -> Guest {
        loop {
            if let Some(guest) = self.enter() {
                return guest;
            }
            self.changed.notified().await;
        }
    }

    /// Asks everybody to go.
    pub(super) fn close(&self) {
        self.closing.cancel();
    }

    fn enter(self: &Arc<Crowd>) -> Option<Guest> {
        let mut state = self.state();
        if state.open < self.most {
            state.open += 1;
            let leave = self.closing.child_token();
            let place = Mutex::new(Place::Resting(state.rest(leave.clone())));
            return Some(Guest { crowd: Arc::clone(self), leave, place });
        }
        if state.leaving == 0
            && let Some((_, leave)) = state.resting.pop_first()
        {
            state.leaving += 1;
            leave.cancel();
        }
        None
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn rest(&mut self, leave: CancellationToken) -> u64 {
        self.next += 1;
        self.resting.insert(self.next, leave);
        self.next
    }

    /// Who began to rest then does so no more.
    fn rises(&mut self, since: u64) {
        // Nobody else takes one out but to ask it to go.
        if self.resting.remove(&since).is_none() {
            self.leaving -= 1;
        }
    }
}

impl Guest {
    /// A request begins; it is over when what is returned is dropped. Who was asked to go and is faster with a request may take
    /// long, so that somebody else can be asked.
    pub(super) fn visit(self: &Arc<Guest>) -> Visit {
        let mut state = self.crowd.state();
        if let Place::Resting(since) = std::mem::replace(&mut *self.place(), Place::Busy) {
            state.rises(since);
            if self.leave.is_cancelled() {
                self.crowd.changed.notify_one();
            }
        }
        Visit { guest: Arc::clone(self), works: false }
    }

    /// Who was asked to go will take his time, so that somebody else can be asked.
    pub(super) fn tarries(&self) {
        let mut state = self.crowd.state();
        let mut place = self.place();
        if let Place::Resting(since) = *place {
            *place = Place::Leaving;
            state.rises(since);
            self.crowd.changed.notify_one();
        }
    }

    /// Whether a request is under way.
    pub(super) fn is_busy(&self) -> bool {
        *self.place() == Place::Busy
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Visit {
    /// It is work, which has to have one of the places for it.
    ///
    /// # Errors
    /// If all of them are taken.
    pub(in crate::gateway) fn works(&mut self) -> Result<(), Crowded> {
        let crowd = &self.guest.crowd;
        let mut state = crowd.state();
        if !self.works && state.working >= crowd.most_working {
            return Err(Crowded);
        }
        state.working += usize::from(!self.works);
        self.works = true;
        Ok(())
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let guest = &self.guest;
        let mut state = guest.crowd.state();
        state.working -= usize::from(self.works);
        if guest.leave.is_cancelled() {
            *guest.place() = Place::Leaving;
        } else {
            *guest.place() = Place::Resting(state.rest(guest.leave.clone()));
            guest.crowd.changed.notify_one();
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let place = *self.place();
        let mut state = self.crowd.state();
        state.open -= 1;
        if let Place::Resting(since) = place {
            state.rises(since);
        }
        self.crowd.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_rested_longest_makes_room_and_who_is_busy_stays() {
        let crowd = Crowd::new(3);
        let [first, second, third] = [(); 3].map(|()| Arc::new(crowd.enter().unwrap()));
        let busy = first.visit();
        drop(second.visit());
        assert!(crowd.enter().is_none());
        let left = [&first, &second, &third].map(|guest| guest.leave.is_cancelled());
        assert_eq!(left, [false, false, true], "the second rested later than the third");
        assert!(crowd.enter().is_none() && !second.leave.is_cancelled(), "one for one");
        drop(third);
        let fourth = crowd.enter().unwrap();
        assert!(crowd.enter().is_none() && second.leave.is_cancelled());
        drop((second, fourth));
        drop(busy);
        assert!(!first.is_busy());
        let state = crowd.state();
        assert_eq!((state.open, state.leaving, state.resting.len()), (1, 0, 1));
        drop(state);
        drop(first);
    }

    #[test]
    fn who_is_faster_with_a_request_than_with_going_keeps_nobody_waiting() {
        let crowd = Crowd::new(2);
        let [first, second] = [(); 2].map(|()| Arc::new(crowd.enter().unwrap()));
        assert!(crowd.enter().is_none() && first.leave.is_cancelled());
        let visit = first.visit();
        assert!(crowd.enter().is_none() && second.leave.is_cancelled(), "another is asked");
        drop(second);
        let third = crowd.enter().unwrap();
        drop((visit, first, third));
        let state = crowd.state();
        assert_eq!((state.open, state.leaving, state.resting.len()), (0, 0, 0));
    }

    #[test]
    fn who_takes_his_time_to_go_keeps_nobody_waiting() {
        let crowd = Crowd::new(2);
        let [first, second] = [(); 2].map(|()| Arc::new(crowd.enter().unwrap()));
        assert!(crowd.enter().is_none() && first.leave.is_cancelled());
        first.tarries();
        first.tarries();
        assert!(crowd.enter().is_none() && second.leave.is_cancelled(), "another is asked");
        drop(first.visit());
        drop((first, second));
        let state = crowd.state();
        assert_eq!((state.open, state.leaving, state.resting.len()), (0, 0, 0));
    }

    #[test]
    fn who_is_asked_to_go_with_everybody_goes_from_where_he_is() {
        let crowd = Crowd::new(2);
        let [resting, busy] = [(); 2].map(|()| Arc::new(crowd.enter().unwrap()));
        let visit = busy.visit();
        crowd.close();
        assert!(resting.leave.is_cancelled() && busy.leave.is_cancelled() && busy.is_busy());
        drop((resting, visit));
        assert!(!busy.is_busy());
        drop(busy);
        let state = crowd.state();
        assert_eq!((state.open, state.leaving, state.resting.len()), (0, 0, 0));
    }

    #[test]
    fn some_places_are_not_for_work() {
        let crowd = Crowd::new(100);
        let guests: Vec<Arc<Guest>> = (0..100).map(|_| Arc::new(crowd.enter().unwrap())).collect();
        let mut visits: Vec<Visit> = guests.iter().map(Guest::visit).collect();
        let (work, other) = visits.split_at_mut(84);
        assert!(work.iter_mut().all(|visit| visit.works() == Ok(())));
        assert!(other.iter_mut().all(|visit| visit.works() == Err(Crowded)));
        assert_eq!(visits[0].works(), Ok(()), "it has its place");
        drop(visits.remove(0));
        let last = visits.last_mut().unwrap();
        assert_eq!(last.works(), Ok(()), "there is a place again");
        drop(visits);
        assert_eq!(crowd.state().working, 0);
        assert_eq!((Crowd::new(1).most_working, Crowd::new(8).most_working), (1, 6), "most is for work");
    }
}
