//! The least of a fixed number of times that change one by one.

use windtunnel_core::Time;

/// Up to this many players meet in rounds that are played afresh every time, which is faster than any tree.
const FEW: usize = 8;

/// Finds the least time, at equal times the one with the lower number. With many players it is a tournament: each inner
/// node of a tree holds the winner of its two sides.
#[derive(Clone, Debug)]
pub struct Earliest {
    /// Times of the players, padded with [`Time::MAX`] to [`FEW`] or to a greater power of two.
    times: Vec<Time>,
    /// The children of node n are 2n and 2n + 1, and below the last row are the players; empty for few of them.
    winners: Vec<u32>,
    champion: usize,
}

impl Earliest {
    /// `count` players, none of which has a time.
    pub fn new(count: usize) -> Earliest {
        if count <= FEW {
            return Earliest { times: vec![Time::MAX; FEW], winners: Vec::new(), champion: 0 };
        }
        let width = count.next_power_of_two();
        let mut earliest = Earliest { times: vec![Time::MAX; width], winners: vec![0; width], champion: 0 };
        for node in (1..width).rev() {
            earliest.winners[node] = earliest.winner(2 * node);
        }
        earliest
    }

    /// The least time and whose it is.
    #[inline]
    pub fn first(&self) -> (Time, usize) {
        (self.times[self.champion], self.champion)
    }

    /// Gives `player` another time.
    #[inline]
    pub fn set(&mut self, player: usize, time: Time) {
        self.times[player] = time;
        if !self.winners.is_empty() {
            self.play(player);
        } else if player == self.champion {
            self.look_through();
        } else if (time, player) < (self.times[self.champion], self.champion) {
            self.champion = player;
        }
    }

    #[inline]
    fn look_through(&mut self) {
        let Some(times) = self.times.first_chunk::<FEW>() else { return };
        let duel = |one: usize, other: usize| if times[other] < times[one] { other } else { one };
        self.champion = duel(duel(duel(0, 1), duel(2, 3)), duel(duel(4, 5), duel(6, 7)));
    }

    fn play(&mut self, player: usize) {
        let mut node = (player + self.times.len()) / 2;
        while node >= 1 {
            let (left, right) = (self.winner(2 * node), self.winner(2 * node + 1));
            let right_wins = self.times[right as usize] < self.times[left as usize];
            self.winners[node] = if right_wins { right } else { left };
            node /= 2;
        }
        self.champion = self.winners[1] as usize;
    }

    fn winner(&self, node: usize) -> u32 {
        if node >= self.winners.len() { (node - self.winners.len()) as u32 } else { self.winners[node] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn the_champion_is_the_first_of_the_least() {
        for count in [1, 2, 3, 8, 9, 64, 65] {
            let mut stream = Stream::from_seed(count as u64);
            let mut earliest = Earliest::new(count);
            let mut times = vec![Time::MAX; count];
            assert_eq!(earliest.first(), (Time::MAX, 0));
            for _ in 0..2000 {
                let player = stream.below(count);
                let time = if stream.below(4) == 0 { Time::MAX } else { Time::from_nanos(stream.bits() % 20) };
                times[player] = time;
                earliest.set(player, time);
                let least = *times.iter().min().unwrap();
                assert_eq!(earliest.first(), (least, times.iter().position(|&time| time == least).unwrap()));
            }
        }
    }
}
