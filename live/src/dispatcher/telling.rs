//! How the scheduler's thread tells whoever brought a job: a channel that takes little room, since everybody who waits has one,
//! and is told a handful of things.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use super::orders::Told;

/// A way to tell somebody, who hears in the order in which he is told.
#[derive(Debug)]
pub struct Teller(Arc<Channel>);

/// Who hears.
#[derive(Debug)]
pub struct Listener(Arc<Channel>);

#[derive(Debug)]
struct Channel(Mutex<State>);

#[derive(Debug)]
struct State {
    told: VecDeque<Told>,
    tellers: usize,
    ear: Ear,
}

/// How whoever hears is reached.
#[derive(Debug)]
enum Ear {
    /// He looks by himself.
    Open,
    /// He waits.
    Asleep(Waker),
    /// He has gone.
    Gone,
}

/// A way to tell somebody, and who hears.
pub fn telling() -> (Teller, Listener) {
    let state = State { told: VecDeque::new(), tellers: 1, ear: Ear::Open };
    let channel = Arc::new(Channel(Mutex::new(state)));
    (Teller(Arc::clone(&channel)), Listener(channel))
}

impl Channel {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Teller {
    /// Tells. Never waits.
    ///
    /// # Errors
    /// Gives back what nobody is there to hear.
    pub fn tell(&self, told: Told) -> Result<(), Told> {
        let mut state = self.0.state();
        if matches!(state.ear, Ear::Gone) {
            return Err(told);
        }
        state.told.push_back(told);
        let ear = std::mem::replace(&mut state.ear, Ear::Open);
        drop(state);
        if let Ear::Asleep(waker) = ear {
            waker.wake();
        }
        Ok(())
    }
}

impl Clone for Teller {
    fn clone(&self) -> Teller {
        self.0.state().tellers += 1;
        Teller(Arc::clone(&self.0))
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.tellers -= 1;
        if state.tellers == 0
            && let Ear::Asleep(waker) = &state.ear
        {
            let waker = waker.clone();
            drop(state);
            waker.wake();
        }
    }
}

impl Listener {
    /// The next that is told; `None`: nobody is left to tell anything.
    pub async fn next(&mut self) -> Option<Told> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The next that was told and not yet heard.
    pub fn heard(&mut self) -> Option<Told> {
        self.0.state().told.pop_front()
    }

    /// Hears nothing from now on; what was told before, and not heard.
    pub fn leave(self) -> VecDeque<Told> {
        self.gone()
    }

    fn gone(&self) -> VecDeque<Told> {
        let mut state = self.0.state();
        state.ear = Ear::Gone;
        std::mem::take(&mut state.told)
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Told>> {
        let mut state = self.0.state();
        if let Some(told) = state.told.pop_front() {
            return Poll::Ready(Some(told));
        }
        if state.tellers == 0 {
            return Poll::Ready(None);
        }
        // Who sleeps keeps no room for what he has heard.
        state.told = VecDeque::new();
        match &mut state.ear {
            Ear::Asleep(waker) => waker.clone_from(cx.waker()),
            ear @ (Ear::Open | Ear::Gone) => *ear = Ear::Asleep(cx.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        drop(self.gone());
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        sync::atomic::{AtomicUsize, Ordering},
        task::Wake,
    };

    use windtunnel_core::JobId;

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Wakes>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn taken(number: u64) -> Told {
        Told::Taken(JobId(number))
    }

    fn number(told: Option<Told>) -> Option<u64> {
        match told? {
            Told::Taken(job) => Some(job.0),
            Told::Waits(_) | Told::Granted(_) | Told::Finished(_) => None,
        }
    }

    /// The next, if there is one by now; `Err`: it is waited for.
    fn poll(listener: &mut Listener, wakes: &Arc<Wakes>) -> Result<Option<u64>, ()> {
        let waker = Waker::from(Arc::clone(wakes));
        match pin!(listener.next()).as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(told) => Ok(number(told)),
            Poll::Pending => Err(()),
        }
    }

    #[test]
    fn who_sleeps_is_woken_once_for_all_that_is_told() {
        let (teller, mut listener) = telling();
        let wakes = Arc::default();
        assert_eq!(poll(&mut listener, &wakes), Err(()));
        teller.tell(taken(1)).unwrap();
        teller.tell(taken(2)).unwrap();
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
        assert_eq!(poll(&mut listener, &wakes), Ok(Some(1)));
        assert_eq!(number(listener.heard()), Some(2));
        assert!(listener.heard().is_none());
    }

    #[test]
    fn all_is_heard_before_the_end_which_comes_with_the_last_teller() {
        let (teller, mut listener) = telling();
        let (other, wakes) = (teller.clone(), Arc::default());
        teller.tell(taken(1)).unwrap();
        drop(teller);
        assert_eq!(poll(&mut listener, &wakes), Ok(Some(1)));
        assert_eq!(poll(&mut listener, &wakes), Err(()));
        drop(other);
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
        assert_eq!(poll(&mut listener, &wakes), Ok(None));
    }

    #[test]
    fn what_nobody_hears_comes_back() {
        let (teller, mut listener) = telling();
        let wakes: Arc<Wakes> = Arc::default();
        assert_eq!(poll(&mut listener, &wakes), Err(()));
        teller.tell(taken(1)).unwrap();
        assert_eq!(wakes.0.swap(0, Ordering::Relaxed), 1);
        assert_eq!(poll(&mut listener, &wakes), Ok(Some(1)));
        assert_eq!(poll(&mut listener, &wakes), Err(()));
        let (other, deaf) = telling();
        other.tell(taken(3)).unwrap();
        assert_eq!(number(deaf.leave().pop_front()), Some(3));
        drop(listener);
        for teller in [teller, other] {
            assert_eq!(number(teller.tell(taken(2)).err()), Some(2));
        }
        assert_eq!((wakes.0.load(Ordering::Relaxed), Arc::strong_count(&wakes)), (0, 1));
    }
}
