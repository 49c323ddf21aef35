//! Pictures of figures, as SVG text.
//!
//! A report or a sweep becomes charts ([`report_charts`], [`sweep_charts`]); a chart is plain data ([`CurveChart`],
//! [`BarChart`]), and it is drawn with nothing that comes from the machine: no
//! font file, no clock, no system library, so that the same figures give the same bytes everywhere.
//!
//! How every chart is made readable: curves differ in colour, dash pattern and marker, so that none of the three is needed;
//! names stand beside the curves' ends or in a strip above the plot, never on it; lines that mark something carry their
//! names in the margin. Colours are Okabe and Ito's (2008), darkened on white and lightened on black until text in them can
//! be read; which of the two a reader gets follows the reader's own setting (`prefers-color-scheme`).

mod bars;
mod canvas;
mod colour;
mod curve;
mod data;
mod finish;
mod frame;
mod legend;
mod margin;
mod of_report;
mod of_sweep;
mod scale;
mod systems;
mod totals;

pub use canvas::ChartError;
pub use data::*;
pub use of_report::report_charts;
pub use of_sweep::sweep_charts;
