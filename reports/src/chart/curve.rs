//! Drawing a [`CurveChart`].

use super::canvas::{Canvas, ChartError, Font, Pixel, Side, width_of};
use super::colour::{DASHES, MARK, MARK_DASH, MUTED};
use super::data::{CurveChart, Look, Series, Spacing};
use super::finish::finished;
use super::frame::{Frame, MARK_FONT, SIZE, Surroundings};
use super::legend::{ENTRY_FONT, Entry, Markers, Sample, colour, marker, unsettled};
use super::margin::spread;
use super::scale::Scale;

/// Curves that end within this share of the axis before its end are named there.
const ENDS_TOGETHER: f64 = 0.03;

/// The most curves that are named at their ends.
const MOST_AT_ENDS: usize = 5;

/// A label in the right margin.
struct EndLabel {
    y: f64,
    text: String,
    font: Font,
}

impl CurveChart {
    /// The chart as an SVG document.
    ///
    /// # Errors
    /// When the drawing library fails.
    pub fn to_svg(&self) -> Result<String, ChartError> {
        let mut drawn = String::new();
        let canvas = Canvas::new(&mut drawn, SIZE);
        self.draw(&canvas)?;
        canvas.finish()?;
        Ok(finished(&drawn, SIZE, &self.title, &self.description()))
    }

    fn draw(&self, canvas: &Canvas) -> Result<(), ChartError> {
        let (x, y) = (self.x_scale(), self.y_scale());
        let at_ends = self.named_at_ends(&x);
        let around = Surroundings {
            title: &self.title,
            subtitle: &self.subtitle,
            x_name: &self.x.label,
            y_name: &self.y.label,
            legend: self.legend(at_ends),
            verticals: &self.verticals,
            right_label: self.right_labels(at_ends),
        };
        let frame = Frame::draw(canvas, around, x, y)?;
        self.draw_horizontals(canvas, &frame)?;
        self.draw_diagonal(canvas, &frame)?;
        for (place, series) in self.series.iter().enumerate() {
            draw_band(canvas, &frame, place, series)?;
        }
        for (place, series) in self.series.iter().enumerate() {
            draw_curve(canvas, &frame, place, series)?;
        }
        self.draw_end_labels(canvas, &frame, at_ends)
    }

    /// The horizontal axis ends where the data does; only a bar or a point at its very end would need more.
    fn x_scale(&self) -> Scale {
        let xs = || self.series.iter().flat_map(|series| series.xs());
        let scale = Scale::covering(&self.x, xs());
        match self.x.spacing {
            Spacing::Linear => {
                let (low, high) = (scale.low(), xs().fold(f64::NEG_INFINITY, f64::max));
                scale.ending_at(low, high)
            }
            Spacing::Logarithmic => scale,
        }
    }

    /// All values and targets are in sight; intervals only up to twice the largest value, lest one point without much data
    /// flatten the picture.
    fn y_scale(&self) -> Scale {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let most = points().map(|point| point.mean).fold(f64::NEG_INFINITY, f64::max) * 2.0;
        let highs = points().filter_map(|point| point.high).map(move |high| high.min(most));
        let lows = points().filter_map(|point| point.low).filter(|low| *low > 0.0);
        let floor = points().map(|point| point.mean).filter(|mean| *mean > 0.0).fold(f64::INFINITY, f64::min) / 2.0;
        let lows = lows.map(move |low| low.max(floor));
        let marks = self.horizontals.iter().map(|mark| mark.at);
        Scale::covering(&self.y, points().map(|point| point.mean).chain(highs).chain(lows).chain(marks))
    }

    fn named_at_ends(&self, x: &Scale) -> AtEnds {
        let last = |series: &Series| series.points.last().map_or(f64::NEG_INFINITY, |point| point.x);
        let limit = x.high() - ENDS_TOGETHER * (x.high() - x.low());
        let few = self.series.len() <= MOST_AT_ENDS && self.series.len() > 1;
        let logarithmic = self.x.spacing == Spacing::Logarithmic;
        if few && !logarithmic && self.series.iter().all(|series| last(series) >= limit) {
            AtEnds::Named
        } else {
            AtEnds::Bare
        }
    }

    fn legend(&self, at_ends: AtEnds) -> Vec<Entry> {
        let mut entries = Vec::new();
        if at_ends == AtEnds::Bare && self.series.len() > 1 {
            entries.extend(self.series.iter().enumerate().map(|(place, series)| Entry {
                sample: Sample::Curve(place, series.markers()),
                name: series.name.clone(),
            }));
        }
        if self.series.iter().any(|series| !series.unsettled.is_empty()) {
            entries.push(Entry { sample: Sample::Unsettled, name: "unstable: no steady value".to_owned() });
        }
        let marks = self.verticals_are.iter().filter(|_| !self.verticals.is_empty());
        entries.extend(marks.map(|name| Entry { sample: Sample::Mark, name: name.clone() }));
        entries.extend(self.diagonal.iter().map(|name| Entry { sample: Sample::Diagonal, name: name.clone() }));
        entries
    }

    fn right_labels(&self, at_ends: AtEnds) -> f64 {
        let series = self.series.iter().filter(|_| at_ends == AtEnds::Named).map(|s| width_of(&s.name, ENTRY_FONT));
        let marks = self.horizontals.iter().map(|mark| width_of(&mark.label, MARK_FONT));
        series.chain(marks).fold(0.0, f64::max)
    }

    fn draw_horizontals(&self, canvas: &Canvas, frame: &Frame) -> Result<(), ChartError> {
        for mark in &self.horizontals {
            let y = frame.y.at(mark.at);
            canvas.dashed(&[(frame.left, y), (frame.right, y)], MARK, 1.3, MARK_DASH)?;
        }
        Ok(())
    }

    fn draw_diagonal(&self, canvas: &Canvas, frame: &Frame) -> Result<(), ChartError> {
        let Some((low, high)) = self.diagonal_ends(frame) else {
            return Ok(());
        };
        let ends = [(frame.x.at(low), frame.y.at(low)), (frame.x.at(high), frame.y.at(high))];
        canvas.line(&ends, MUTED, 1.0)
    }

    /// From where to where y = x is in sight.
    fn diagonal_ends(&self, frame: &Frame) -> Option<(f64, f64)> {
        self.diagonal.as_ref()?;
        let (low, high) = (frame.x.low().max(frame.y.low()), frame.x.high().min(frame.y.high()));
        (low < high).then_some((low, high))
    }

    fn draw_end_labels(&self, canvas: &Canvas, frame: &Frame, at_ends: AtEnds) -> Result<(), ChartError> {
        let labels = self.end_labels(frame, at_ends);
        let wanted: Vec<f64> = labels.iter().map(|label| label.y).collect();
        let places = spread(&wanted, frame.top + 4.0, frame.bottom - 4.0);
        for (label, y) in labels.iter().zip(places) {
            let ends = [(frame.right + 2.0, label.y), (frame.right + 11.0, y)];
            canvas.line(&ends, label.font.colour, 1.0)?;
            canvas.text((frame.right + 14.0, y), Side::Right, &label.text, label.font)?;
        }
        Ok(())
    }

    fn end_labels(&self, frame: &Frame, at_ends: AtEnds) -> Vec<EndLabel> {
        let mut labels = Vec::new();
        if at_ends == AtEnds::Named {
            for (place, series) in self.series.iter().enumerate() {
                let y = series.points.last().map_or(frame.bottom, |point| frame.y.at(point.mean));
                labels.push(EndLabel {
                    y,
                    text: series.name.clone(),
                    font: Font { colour: colour(place), ..ENTRY_FONT },
                });
            }
        }
        let marks = self.horizontals.iter().map(|mark| (frame.y.at(mark.at), mark.label.clone()));
        labels.extend(marks.map(|(y, text)| EndLabel { y, text, font: MARK_FONT }));
        labels
    }

    /// The chart in words.
    fn description(&self) -> String {
        let names: Vec<&str> = self.series.iter().map(|series| series.name.as_str()).collect();
        let marks: Vec<&str> = self.verticals.iter().chain(&self.horizontals).map(|mark| mark.label.as_str()).collect();
        let marked = if marks.is_empty() { String::new() } else { format!(" Marked: {}.", marks.join("; ")) };
        format!("{} {} over {}: {}.{marked}", self.subtitle, self.y.label, self.x.label, names.join(", "))
            .trim()
            .to_owned()
    }
}

/// Whether curves are named at their ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AtEnds {
    Named,
    Bare,
}

impl Series {
    fn xs(&self) -> impl Iterator<Item = f64> + '_ {
        self.points.iter().map(|point| point.x).chain(self.unsettled.iter().copied())
    }

    fn markers(&self) -> Markers {
        match self.look {
            Look::Points => Markers::Shown,
            Look::Line => Markers::Hidden,
        }
    }
}

/// The intervals as a band.
fn draw_band(canvas: &Canvas, frame: &Frame, place: usize, series: &Series) -> Result<(), ChartError> {
    let ends: Vec<(f64, f64, f64)> =
        series.points.iter().filter_map(|point| Some((point.x, point.low?, point.high?))).collect();
    if ends.len() < 2 {
        return Ok(());
    }
    let lower = ends.iter().map(|(x, low, _)| (frame.x.at(*x), frame.y.at(*low)));
    let upper = ends.iter().rev().map(|(x, _, high)| (frame.x.at(*x), frame.y.at(*high)));
    let outline: Vec<Pixel> = lower.chain(upper).collect();
    canvas.shape(&outline, colour(place), 0.2)
}

fn draw_curve(canvas: &Canvas, frame: &Frame, place: usize, series: &Series) -> Result<(), ChartError> {
    let points: Vec<Pixel> = series.points.iter().map(|point| (frame.x.at(point.x), frame.y.at(point.mean))).collect();
    canvas.dashed(&points, colour(place), 2.2, DASHES[place % DASHES.len()])?;
    match series.look {
        Look::Points => points.iter().try_for_each(|at| canvas.marker(*at, marker(place), colour(place)))?,
        Look::Line => {}
    }
    let top = series.unsettled.iter().map(|x| (frame.x.at(*x), frame.top + 10.0));
    for at in top {
        unsettled(canvas, at)?;
    }
    Ok(())
}
