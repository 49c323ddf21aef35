//! Drawing a [`BarChart`].

use super::canvas::{Canvas, ChartError};
use super::data::{BarChart, Spacing};
use super::finish::finished;
use super::frame::{Frame, SIZE, Surroundings};
use super::legend::{Entry, Sample, colour};
use super::scale::Scale;

/// The share of a group's place that its bars fill.
const FILLED: f64 = 0.8;

impl BarChart {
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
        let around = Surroundings {
            title: &self.title,
            subtitle: &self.subtitle,
            x_name: &self.x.label,
            y_name: &self.y.label,
            legend: self.legend(),
            verticals: &self.verticals,
            right_label: 0.0,
        };
        let frame = Frame::draw(canvas, around, x, y)?;
        let group = FILLED * self.spacing();
        let bar = group / self.series.len().max(1) as f64;
        for (place, series) in self.series.iter().enumerate() {
            for (x, height) in &series.bars {
                let left = x - group / 2.0 + bar * place as f64;
                let from = (frame.x.at(left), frame.y.at(*height));
                canvas.rectangle(from, (frame.x.at(left + bar), frame.bottom), colour(place), 0.9)?;
            }
        }
        Ok(())
    }

    /// Half a place beyond the outer bars.
    fn x_scale(&self) -> Scale {
        let half = self.spacing() / 2.0;
        let (low, high) =
            self.xs().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
        Scale::covering(&super::data::Axis { spacing: Spacing::Linear, ..self.x.clone() }, self.xs())
            .ending_at(low - half, high + half)
    }

    fn y_scale(&self) -> Scale {
        let heights = self.series.iter().flat_map(|series| series.bars.iter().map(|(_, height)| *height));
        Scale::covering(&self.y, heights.chain([0.0]))
    }

    fn xs(&self) -> impl Iterator<Item = f64> + '_ {
        self.series.iter().flat_map(|series| series.bars.iter().map(|(x, _)| *x))
    }

    /// The least distance between two groups; 1 where there is but one.
    fn spacing(&self) -> f64 {
        let mut xs: Vec<f64> = self.xs().collect();
        xs.sort_by(f64::total_cmp);
        let gaps = xs.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 0.0);
        let least = gaps.fold(f64::INFINITY, f64::min);
        if least.is_finite() { least } else { 1.0 }
    }

    fn legend(&self) -> Vec<Entry> {
        if self.series.len() < 2 {
            return Vec::new();
        }
        let entry = |(place, name): (usize, &String)| Entry { sample: Sample::Box(place), name: name.clone() };
        self.series.iter().map(|series| &series.name).enumerate().map(entry).collect()
    }

    /// The chart in words.
    fn description(&self) -> String {
        let names: Vec<&str> = self.series.iter().map(|series| series.name.as_str()).collect();
        format!("{} {} over {}: {}.", self.subtitle, self.y.label, self.x.label, names.join(", ")).trim().to_owned()
    }
}
