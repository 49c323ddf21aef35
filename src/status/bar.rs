//! The memory of a device as a bar: ours, becoming free, of others, free. Each has a letter of its own, so that colours are not
//! needed to read it.

use windtunnel_live::operator::Holding;

use super::page::{Piece, Tone};

/// Parts of a bar in their order.
const PARTS: [(char, Tone); 4] = [('█', Tone::Ours), ('▒', Tone::Coming), ('▓', Tone::Others), ('·', Tone::Dim)];

/// The bar, `width` letters between its brackets; nothing where nothing bounds the memory.
pub fn bar(memory: &Holding, width: usize) -> Vec<Piece> {
    let Some(budget) = memory.budget.filter(|budget| *budget > 0) else { return Vec::new() };
    let coming = memory.coming.min(memory.booked);
    let parts = [memory.booked - coming, coming, memory.foreign];
    let mut pieces = vec![Piece::new("[", Tone::Plain)];
    let (mut end, mut drawn) = (0_u64, 0);
    for ((letter, tone), bytes) in PARTS.into_iter().zip(parts) {
        end = end.saturating_add(bytes);
        let until = cells(end, budget, width).max(drawn);
        // What is there shows, however little it is.
        let until = if bytes > 0 && until == drawn { (drawn + 1).min(width) } else { until };
        pieces.push(Piece::new(letter.to_string().repeat(until - drawn), tone));
        drawn = until;
    }
    let [.., (letter, tone)] = PARTS;
    pieces.push(Piece::new(letter.to_string().repeat(width - drawn), tone));
    pieces.push(Piece::new("]", Tone::Plain));
    pieces.retain(|piece| !piece.text.is_empty());
    pieces
}

/// How many of `width` letters stand for `bytes`, rounded down.
fn cells(bytes: u64, budget: u64, width: usize) -> usize {
    let cells = u128::from(bytes) * width as u128 / u128::from(budget);
    usize::try_from(cells).unwrap_or(width).min(width)
}

#[cfg(test)]
mod tests {
    use windtunnel_core::{MonitorHealth, PressureLevel};

    use super::*;

    fn shown(budget: Option<u64>, booked: u64, coming: u64, foreign: u64) -> String {
        let (monitor, pressure) = (MonitorHealth::Alive, PressureLevel::Normal);
        let memory = Holding { budget, booked, coming, foreign, owed: 0, read_ms_ago: None, monitor, pressure };
        bar(&memory, 10).into_iter().map(|piece| piece.text).collect()
    }

    #[test]
    fn every_part_shows_and_none_leaves_the_bar() {
        assert_eq!(shown(Some(100), 50, 20, 20), "[███▒▒▓▓···]");
        assert_eq!(shown(Some(100), 0, 0, 0), "[··········]");
        assert_eq!(shown(Some(100), 1, 0, 1), "[█▓········]");
        assert_eq!(shown(Some(100), 900, 20, 900), "[██████████]");
        assert_eq!(shown(Some(u64::MAX), u64::MAX, 0, u64::MAX), "[██████████]");
        assert_eq!(shown(None, 5, 0, 0), "");
        assert_eq!(shown(Some(0), 5, 0, 0), "");
    }
}
