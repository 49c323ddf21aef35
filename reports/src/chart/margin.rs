//! Labels in the margins that must not run into each other: those of vertical lines above the plot, those of curves and
//! horizontal lines to its right.

/// The height a label needs.
pub(super) const LABEL: f64 = 15.0;

/// A label of a vertical line: beside it in one of some rows above the plot, the lowest being row 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Placed {
    pub(super) row: usize,
    /// Where the text begins.
    pub(super) left: f64,
    pub(super) width: f64,
    /// Where the line is.
    pub(super) line: f64,
}

const BESIDE: f64 = 5.0;
const APART: f64 = 8.0;

/// Places labels for lines at `lines` (x and width of the label each), between `from` and `to`, in as few rows as
/// possible, to the right of the line rather than to its left. No line runs through a label, nor through what stands in row
/// 0 up to `taken`; `None` where there is no way.
pub(super) fn place_above(lines: &[(f64, f64)], taken: f64, from: f64, to: f64) -> Option<Vec<Placed>> {
    let name = Placed { row: 0, left: from, width: taken - from, line: f64::NEG_INFINITY };
    (1..=lines.len().max(1)).find_map(|rows| {
        let mut placed = vec![name];
        complete(lines, rows, from, to, &mut placed).then(|| placed.split_off(1))
    })
}

/// Places the rest of the labels, trying every way.
fn complete(lines: &[(f64, f64)], rows: usize, from: f64, to: f64, placed: &mut Vec<Placed>) -> bool {
    let Some((line, width)) = lines.first().copied() else {
        return true;
    };
    for row in 0..rows {
        for left in [line + BESIDE, line - BESIDE - width] {
            let label = Placed { row, left, width, line };
            if left < from || left + width > to || placed.iter().any(|other| clash(label, *other)) {
                continue;
            }
            placed.push(label);
            if complete(&lines[1..], rows, from, to, placed) {
                return true;
            }
            placed.pop();
        }
    }
    false
}

fn clash(a: Placed, b: Placed) -> bool {
    let overlap = a.left < b.left + b.width + APART && b.left < a.left + a.width + APART;
    let through = |label: Placed, line: Placed| {
        label.row <= line.row && line.line > label.left - 3.0 && line.line < label.left + label.width + 3.0
    };
    (a.row == b.row && overlap) || through(a, b) || through(b, a)
}

/// Moves labels that want to be at `wanted` apart until each has its height, between `from` and `to`; in the order given.
pub(super) fn spread(wanted: &[f64], from: f64, to: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let mut at: Vec<f64> = order.iter().map(|index| wanted[*index].clamp(from, to)).collect();
    for index in 1..at.len() {
        at[index] = at[index].max(at[index - 1] + LABEL);
    }
    let mut limit = to;
    for place in at.iter_mut().rev() {
        *place = place.min(limit);
        limit = *place - LABEL;
    }
    let mut spread = vec![0.0; wanted.len()];
    for (index, place) in order.into_iter().zip(at) {
        spread[index] = place;
    }
    spread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_neighbouring_lines_stand_on_both_sides_of_them() {
        let placed = place_above(&[(500.0, 120.0), (520.0, 90.0)], 60.0, 0.0, 700.0).expect("there is room");
        assert_eq!((placed[0].row, placed[0].left), (0, 375.0));
        assert_eq!((placed[1].row, placed[1].left), (0, 525.0));
    }

    #[test]
    fn three_neighbours_need_a_second_row_and_no_line_runs_through_a_label() {
        let lines = [(500.0, 120.0), (520.0, 90.0), (540.0, 90.0)];
        let placed = place_above(&lines, 60.0, 0.0, 700.0).expect("there is room");
        assert_eq!(placed.iter().map(|label| label.row).max(), Some(1));
        for (index, label) in placed.iter().enumerate() {
            assert!(placed[..index].iter().all(|other| !clash(*label, *other)), "{placed:?}");
        }
    }

    #[test]
    fn a_label_at_the_edge_turns_inwards_and_the_axis_name_is_left_alone() {
        let edge = place_above(&[(690.0, 80.0)], 60.0, 0.0, 700.0).expect("there is room");
        assert_eq!((edge[0].row, edge[0].left), (0, 605.0));
        assert_eq!(place_above(&[(40.0, 80.0)], 60.0, 0.0, 700.0), None);
    }

    #[test]
    fn crowded_labels_are_spread_and_keep_their_order() {
        let at = spread(&[100.0, 98.0, 300.0], 0.0, 310.0);
        assert_eq!(at, [113.0, 98.0, 300.0]);
        assert_eq!(spread(&[309.0, 310.0], 0.0, 310.0), [295.0, 310.0]);
    }
}
