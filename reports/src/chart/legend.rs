//! The names of the curves: in the right margin beside their ends, or in a strip above the plot where the curves end in
//! different places.

use super::canvas::{Canvas, ChartError, Font, Pixel, Side, Weight, width_of};
use super::colour::{Colour, DASHES, INK, MARK, MARK_DASH, MARKERS, MUTED, Marker, SERIES};

/// What stands before a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sample {
    /// A piece of the curve of this place, with its marker where it has one.
    Curve(usize, Markers),
    /// A filled box in the colour of this place.
    Box(usize),
    /// The sign for a rate at which the system does not settle.
    Unsettled,
    /// The line y = x.
    Diagonal,
    /// A vertical line that marks something, in its bracket.
    Mark,
}

impl Sample {
    fn width(self) -> f64 {
        match self {
            Sample::Curve(..) => CURVE,
            Sample::Box(_) | Sample::Unsettled | Sample::Diagonal | Sample::Mark => SIGN,
        }
    }
}

/// Whether a curve shows its points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Markers {
    Shown,
    Hidden,
}

/// One entry of the strip.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) sample: Sample,
    pub(super) name: String,
}

pub(super) const ENTRY_FONT: Font = Font { size: 12.0, bold: Weight::Regular, colour: INK };
const CURVE: f64 = 30.0;
const SIGN: f64 = 13.0;
const BEFORE_NAME: f64 = 6.0;
const BETWEEN: f64 = 22.0;
pub(super) const ROW: f64 = 19.0;

/// Entries broken into rows, each entry with its x.
pub(super) fn rows(entries: Vec<Entry>, left: f64, right: f64) -> Vec<Vec<(f64, Entry)>> {
    let mut rows: Vec<Vec<(f64, Entry)>> = Vec::new();
    let mut x = f64::INFINITY;
    for entry in entries {
        let width = entry.sample.width() + BEFORE_NAME + width_of(&entry.name, ENTRY_FONT);
        if x + width > right {
            rows.push(Vec::new());
            x = left;
        }
        if let Some(row) = rows.last_mut() {
            row.push((x, entry));
        }
        x += width + BETWEEN;
    }
    rows
}

/// Draws the rows, the first around y.
pub(super) fn draw(canvas: &Canvas, rows: &[Vec<(f64, Entry)>], y: f64) -> Result<(), ChartError> {
    for (index, row) in rows.iter().enumerate() {
        let y = y + index as f64 * ROW;
        for (x, entry) in row {
            sample(canvas, entry.sample, *x, y)?;
            canvas.text((x + entry.sample.width() + BEFORE_NAME, y), Side::Right, &entry.name, ENTRY_FONT)?;
        }
    }
    Ok(())
}

fn sample(canvas: &Canvas, sample: Sample, x: f64, y: f64) -> Result<(), ChartError> {
    match sample {
        Sample::Curve(place, markers) => {
            let ends = [(x, y), (x + CURVE, y)];
            canvas.dashed(&ends, colour(place), 2.2, DASHES[place % DASHES.len()])?;
            match markers {
                Markers::Shown => canvas.marker((x + CURVE / 2.0, y), marker(place), colour(place)),
                Markers::Hidden => Ok(()),
            }
        }
        Sample::Box(place) => canvas.rectangle((x, y - 6.0), (x + SIGN, y + 6.0), colour(place), 0.9),
        Sample::Unsettled => unsettled(canvas, (x + SIGN / 2.0, y + 4.0)),
        Sample::Mark => {
            canvas.rectangle((x + 3.0, y - 7.0), (x + SIGN - 3.0, y + 7.0), MARK, 0.18)?;
            canvas.dashed(&[(x + SIGN / 2.0, y + 7.0), (x + SIGN / 2.0, y - 7.0)], MARK, 1.3, MARK_DASH)
        }
        Sample::Diagonal => canvas.line(&[(x, y + 5.0), (x + SIGN, y - 6.0)], MUTED, 1.0),
    }
}

/// An open triangle that points to where the value would go.
pub(super) fn unsettled(canvas: &Canvas, at: Pixel) -> Result<(), ChartError> {
    let (x, y) = at;
    let corners = [(x - 4.5, y), (x, y - 8.0), (x + 4.5, y), (x - 4.5, y)];
    canvas.line(&corners, INK, 1.6)
}

pub(super) fn colour(place: usize) -> Colour {
    SERIES[place % SERIES.len()]
}

pub(super) fn marker(place: usize) -> Marker {
    MARKERS[place % MARKERS.len()]
}
