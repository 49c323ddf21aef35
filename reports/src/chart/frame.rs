//! Everything around the data: title, names, axes, ticks, and the lines that mark something.

use super::canvas::{Canvas, ChartError, Font, Side, Weight, width_of};
use super::colour::{AXIS, GRID, INK, MARK, MARK_DASH, MUTED, PAPER};
use super::data::Mark;
use super::legend::{self, Entry};
use super::margin::{LABEL, Placed, place_above};
use super::scale::Scale;

/// The size of every chart, in pixels.
pub(super) const SIZE: (f64, f64) = (760.0, 450.0);

const TITLE: Font = Font { size: 17.0, bold: Weight::Bold, colour: INK };
const SUBTITLE: Font = Font { size: 12.5, bold: Weight::Regular, colour: MUTED };
const TICK: Font = Font { size: 12.0, bold: Weight::Regular, colour: MUTED };
const AXIS_NAME: Font = Font { size: 12.5, bold: Weight::Regular, colour: INK };
pub(super) const MARK_FONT: Font = Font { size: 12.0, bold: Weight::Regular, colour: MARK };

const EDGE: f64 = 16.0;

/// Between the plot and the lowest row of labels: half of the topmost tick's label and a little air.
const ABOVE_PLOT: f64 = 9.0;

/// What goes around the data.
pub(super) struct Surroundings<'a> {
    pub(super) title: &'a str,
    pub(super) subtitle: &'a str,
    pub(super) x_name: &'a str,
    pub(super) y_name: &'a str,
    pub(super) legend: Vec<Entry>,
    pub(super) verticals: &'a [Mark],
    /// The widest label in the right margin.
    pub(super) right_label: f64,
}

/// The plot within its surroundings.
pub(super) struct Frame {
    pub(super) x: Scale,
    pub(super) y: Scale,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Frame {
    /// Draws the surroundings and lays the scales along what is left of the paper.
    pub(super) fn draw(canvas: &Canvas, around: Surroundings, x: Scale, y: Scale) -> Result<Frame, ChartError> {
        canvas.rectangle((0.0, 0.0), SIZE, PAPER, 1.0)?;
        let mut line = EDGE + TITLE.size / 2.0;
        for text in wrapped(around.title, TITLE) {
            canvas.text((EDGE, line), Side::Right, &text, TITLE)?;
            line += TITLE.size * 1.3;
        }
        for text in wrapped(around.subtitle, SUBTITLE) {
            canvas.text((EDGE, line), Side::Right, &text, SUBTITLE)?;
            line += SUBTITLE.size * 1.35;
        }
        let rows = legend::rows(around.legend, EDGE, SIZE.0 - EDGE);
        legend::draw(canvas, &rows, line + 3.0)?;
        line += rows.len() as f64 * legend::ROW + 3.0;
        let left = EDGE + 8.0 + y.ticks().iter().map(|(_, label)| width_of(label, TICK)).fold(20.0, f64::max);
        let right = SIZE.0 - EDGE - (around.right_label + if around.right_label > 0.0 { 16.0 } else { 6.0 });
        let x = x.along(left, right);
        let marks: Vec<&Mark> = around.verticals.iter().filter(|mark| x.contains(mark.at)).collect();
        let widths: Vec<(f64, f64)> =
            marks.iter().map(|mark| (x.at(mark.at), width_of(&mark.label, MARK_FONT))).collect();
        let name_end = EDGE + width_of(around.y_name, AXIS_NAME) + 8.0;
        let beside = place_above(&widths, name_end, EDGE, SIZE.0 - EDGE);
        // a line near the axis would run through the axis's name, so the name moves above all labels
        let above = || place_above(&widths, EDGE, EDGE, SIZE.0 - EDGE).unwrap_or_default();
        let (placed, name_row) = match beside {
            Some(placed) => (placed, 0),
            None => {
                let placed = above();
                let rows = placed.iter().map(|label| label.row + 1).max().unwrap_or(0);
                (placed, rows)
            }
        };
        let row_count = placed.iter().map(|label| label.row + 1).max().unwrap_or(1).max(name_row + 1);
        let top = line + row_count as f64 * LABEL + ABOVE_PLOT + 2.0;
        let bottom = SIZE.1 - EDGE - 38.0;
        let frame = Frame { x, y: y.along(bottom, top), left, right, top, bottom };
        canvas.text((EDGE, frame.row(name_row)), Side::Right, around.y_name, AXIS_NAME)?;
        frame.axes(canvas, around.x_name)?;
        frame.verticals(canvas, &marks, &placed)?;
        Ok(frame)
    }

    /// The middle of a row of labels above the plot.
    fn row(&self, row: usize) -> f64 {
        self.top - ABOVE_PLOT - LABEL * (row as f64 + 0.5)
    }

    fn axes(&self, canvas: &Canvas, x_name: &str) -> Result<(), ChartError> {
        for (value, label) in self.y.ticks() {
            let y = self.y.at(value);
            canvas.line(&[(self.left, y), (self.right, y)], GRID, 1.0)?;
            canvas.text((self.left - 8.0, y), Side::Left, &label, TICK)?;
        }
        for (value, label) in self.sparse_ticks() {
            let x = self.x.at(value);
            canvas.line(&[(x, self.bottom), (x, self.bottom + 5.0)], AXIS, 1.0)?;
            canvas.text((x, self.bottom + 16.0), Side::Middle, &label, TICK)?;
        }
        canvas.line(&[(self.left, self.bottom), (self.right, self.bottom)], AXIS, 1.2)?;
        let middle = (self.left + self.right) / 2.0;
        canvas.text((middle, self.bottom + 38.0), Side::Middle, x_name, AXIS_NAME)
    }

    /// Ticks of the horizontal axis whose labels do not touch each other.
    fn sparse_ticks(&self) -> Vec<(f64, String)> {
        let mut free_from = f64::NEG_INFINITY;
        let keep = |(value, label): &(f64, String)| {
            let (middle, half) = (self.x.at(*value), width_of(label, TICK) / 2.0 + 5.0);
            let fits = middle - half >= free_from && middle + half <= SIZE.0;
            if fits {
                free_from = middle + half;
            }
            fits
        };
        let mut ticks = self.x.ticks();
        let mut keep = keep;
        ticks.retain(|tick| keep(tick));
        ticks
    }

    fn verticals(&self, canvas: &Canvas, marks: &[&Mark], placed: &[Placed]) -> Result<(), ChartError> {
        for (mark, label) in marks.iter().zip(placed) {
            if let Some((low, high)) = mark.between {
                canvas.rectangle((self.x.at(low), self.top), (self.x.at(high), self.bottom), MARK, 0.18)?;
            }
            let up_to = self.row(label.row) - LABEL / 2.0 + 2.0;
            canvas.dashed(&[(label.line, self.bottom), (label.line, up_to)], MARK, 1.3, MARK_DASH)?;
            canvas.text((label.left, self.row(label.row)), Side::Right, &mark.label, MARK_FONT)?;
        }
        Ok(())
    }
}

/// Breaks a text into lines that fit on the paper.
fn wrapped(text: &str, font: Font) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width_of(line, font) + width_of(" ", font) + width_of(word, font) <= SIZE.0 - 2.0 * EDGE => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    lines
}
