//! What a chart is, before it is drawn.

use super::canvas::ChartError;

/// A drawn chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The name of the file it belongs in.
    pub file: String,
    /// What it shows.
    pub title: String,
    /// The document.
    pub svg: String,
}

/// Curves over a numeric axis.
#[derive(Clone, Debug, PartialEq)]
pub struct CurveChart {
    /// What it shows.
    pub title: String,
    /// Under which circumstances.
    pub subtitle: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves.
    pub series: Vec<Series>,
    /// Values of x that mean something.
    pub verticals: Vec<Mark>,
    /// What they mean, where their own labels are too short to say it.
    pub verticals_are: Option<String>,
    /// Values of y that mean something.
    pub horizontals: Vec<Mark>,
    /// The name of the line y = x, where it means something.
    pub diagonal: Option<String>,
}

/// Bars over a numeric axis, one group for each x.
#[derive(Clone, Debug, PartialEq)]
pub struct BarChart {
    /// What it shows.
    pub title: String,
    /// Under which circumstances.
    pub subtitle: String,
    /// The horizontal axis; linear.
    pub x: Axis,
    /// The vertical axis; linear, from zero.
    pub y: Axis,
    /// What is shown side by side.
    pub series: Vec<BarSeries>,
    /// Values of x that mean something.
    pub verticals: Vec<Mark>,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What is on it, with its unit unless the tick labels carry it.
    pub label: String,
    /// How its numbers are written.
    pub unit: Unit,
    /// How it is divided.
    pub spacing: Spacing,
}

/// How numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// As they are: 900, 1k, 2.5k.
    Number,
    /// Seconds, written as s, ms or us.
    Seconds,
    /// A share of 1, written in percent.
    Share,
}

/// How an axis is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Equal differences are equal lengths; zero is shown unless all values are far from it.
    Linear,
    /// Equal ratios are equal lengths. Values of zero and below are not shown.
    Logarithmic,
}

/// A curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its points; ascending in x.
    pub points: Vec<CurvePoint>,
    /// Values of x at which it has no value because the system does not settle there.
    pub unsettled: Vec<f64>,
    /// How it is drawn.
    pub look: Look,
}

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Measured points, joined.
    Points,
    /// A line through many points.
    Line,
}

/// A point with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// Where.
    pub x: f64,
    /// The value.
    pub mean: f64,
    /// The lower end of its interval; `None`: there is no interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

/// A value of an axis that means something.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Where.
    pub at: f64,
    /// The interval in which it lies, where it is known only so far.
    pub between: Option<(f64, f64)>,
    /// What it is.
    pub label: String,
}

/// Bars of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct BarSeries {
    /// Their name.
    pub name: String,
    /// Where and how high; x ascending.
    pub bars: Vec<(f64, f64)>,
}

impl CurveChart {
    /// The chart, drawn.
    ///
    /// # Errors
    /// When the drawing library fails.
    pub fn picture(&self, file: &str) -> Result<Picture, ChartError> {
        Ok(Picture { file: file.to_owned(), title: self.title.clone(), svg: self.to_svg()? })
    }
}

impl BarChart {
    /// The chart, drawn.
    ///
    /// # Errors
    /// When the drawing library fails.
    pub fn picture(&self, file: &str) -> Result<Picture, ChartError> {
        Ok(Picture { file: file.to_owned(), title: self.title.clone(), svg: self.to_svg()? })
    }
}

impl CurvePoint {
    /// A point without an interval.
    pub const fn plain(x: f64, mean: f64) -> CurvePoint {
        CurvePoint { x, mean, low: None, high: None }
    }
}

impl Mark {
    /// An exact value.
    pub fn exact(at: f64, label: impl Into<String>) -> Mark {
        Mark { at, between: None, label: label.into() }
    }
}
