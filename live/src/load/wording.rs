//! Words for prompts: common ones, most of which are one token, in an order drawn for each prompt.

/// No prompt has more words than this, whatever a distribution with a long tail says.
const MOST: u32 = 1 << 22;

const WORDS: [&str; 64] = [
    "time", "year", "people", "way", "day", "man", "thing", "woman", "life", "child", "world", "school", "state",
    "family", "student", "group", "country", "problem", "hand", "part", "place", "case", "week", "company", "system",
    "program", "question", "work", "number", "night", "point", "home", "water", "room", "mother", "area", "money",
    "story", "fact", "month", "lot", "right", "study", "book", "eye", "job", "word", "business", "issue", "side",
    "kind", "head", "house", "service", "friend", "father", "power", "hour", "game", "line", "end", "law", "car",
    "city",
];

/// A stream of words.
#[derive(Clone, Debug)]
pub struct Wording {
    state: u64,
}

impl Wording {
    /// The stream of `seed`; different seeds differ from the first words on.
    pub fn new(seed: u64) -> Wording {
        Wording { state: seed }
    }

    /// The next `count` words, at least one: what is asked about nothing is no question.
    pub fn text(&mut self, count: u32) -> String {
        let count = count.clamp(1, MOST);
        let mut text = String::with_capacity(count as usize * 6);
        let (mut bits, mut left) = (0, 0);
        for number in 0..count {
            if left == 0 {
                (bits, left) = (self.draw(), 10);
            }
            if number > 0 {
                text.push(' ');
            }
            text.push_str(WORDS[(bits % 64) as usize]);
            (bits, left) = (bits / 64, left - 1);
        }
        text
    }

    /// splitmix64 (Steele, Lea and Flood, 2014).
    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_text_has_as_many_words_as_asked_for() {
        for count in [1, 2, 10, 11, 500] {
            assert_eq!(Wording::new(7).text(count).split(' ').count(), count as usize);
        }
        assert_eq!(Wording::new(7).text(0).split(' ').count(), 1);
    }

    #[test]
    fn prompts_begin_differently() {
        let beginnings: BTreeSet<String> = (0..2_000).map(|seed| Wording::new(seed).text(6)).collect();
        assert_eq!(beginnings.len(), 2_000);
    }
}
