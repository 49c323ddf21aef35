//! One request for the texts of several steps, and shares of what it counted.

use bytes::Bytes;

use super::{Part, split::Count};
use crate::gateway::body::{Edit, With, edited};

/// The body for a child: as its client sent it if it is a whole job, else the first one's with all texts in a list.
pub(super) fn body(model: &str, group: &[Part]) -> Vec<Bytes> {
    let Some((step, first)) = group.first() else { return Vec::new() };
    if group.len() == 1 && step.of == 1 {
        return edited(&first.body.bytes, &first.body.edits, model);
    }
    let texts = group.iter().flat_map(|(step, work)| {
        let texts = work.body.inputs.each.get(work.inputs_of(step)).unwrap_or_default();
        texts.iter().map(|text| work.body.bytes.get(text.clone()).unwrap_or_default())
    });
    let texts: Vec<&[u8]> = texts.collect();
    let list = [b"[".as_slice(), &texts.join(&b","[..]), b"]"].concat();
    let mut edits = first.body.edits.clone();
    edits.push(Edit { range: first.body.inputs.whole.clone(), with: With::Text(list.into()) });
    edits.sort_by_key(|edit| edit.range.start);
    edited(&first.body.bytes, &edits, model)
}

/// What each step has of every count, by how much text it brought; the last takes what rounding leaves, so that nothing is
/// lost.
pub(super) fn shares(usage: &[Count], texts: &[u64]) -> Vec<Vec<u64>> {
    let all: u128 = texts.iter().map(|text| u128::from(*text)).sum::<u128>().max(1);
    let mut before: u128 = 0;
    let mut shares = Vec::with_capacity(texts.len());
    for (number, text) in texts.iter().enumerate() {
        let from = before;
        before += u128::from(*text);
        let to = if number + 1 == texts.len() { all } else { before };
        let share = |count: &Count| {
            let until = |part: u128| u64::try_from(u128::from(count.count) * part / all).unwrap_or(u64::MAX);
            until(to) - until(from)
        };
        shares.push(usage.iter().map(share).collect());
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_the_text_and_lose_nothing() {
        let usage = [Count { at: 0..1, count: 100 }, Count { at: 1..2, count: 7 }];
        assert_eq!(shares(&usage, &[1, 1, 1]), [[33, 2], [33, 2], [34, 3]]);
        assert_eq!(shares(&usage, &[10, 30]), [[25, 1], [75, 6]]);
        assert_eq!(shares(&usage, &[0, 0]), [[0, 0], [100, 7]]);
    }
}
