//! Strokes, shapes and words on an SVG surface, in pixels from the upper left corner.
//!
//! The surface itself has ten times as many units as pixels, since its coordinates are whole numbers.

use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Polygon, Rectangle, Text};
use plotters::prelude::SVGBackend;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontFamily, FontStyle, IntoFont, IntoTextStyle, RGBAColor, ShapeStyle};
use thiserror::Error;

use super::colour::{Colour, Marker};

/// A chart could not be drawn.
#[derive(Debug, Error)]
#[error("drawing a chart failed: {0}")]
pub struct ChartError(#[from] DrawingAreaErrorKind<std::io::Error>);

/// A point in pixels.
pub(super) type Pixel = (f64, f64);

/// Units of the surface in a pixel.
pub(super) const FINENESS: f64 = 10.0;

/// The library takes a font's size to be its line's height, this many times the size written.
const LINE_HEIGHT: f64 = 1.24;

pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

/// Where a word stands relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// It begins there.
    Right,
    /// It ends there.
    Left,
    /// Its middle is there.
    Middle,
}

/// How words look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Font {
    pub(super) size: f64,
    pub(super) bold: Weight,
    pub(super) colour: Colour,
}

/// How heavy letters are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    Regular,
    Bold,
}

impl<'a> Canvas<'a> {
    pub(super) fn new(buffer: &'a mut String, size: (f64, f64)) -> Canvas<'a> {
        let units = (fine(size.0) as u32, fine(size.1) as u32);
        Canvas { area: SVGBackend::with_string(buffer, units).into_drawing_area() }
    }

    pub(super) fn finish(self) -> Result<(), ChartError> {
        Ok(self.area.present()?)
    }

    pub(super) fn line(&self, points: &[Pixel], colour: Colour, width: f64) -> Result<(), ChartError> {
        let style = stroke(colour.drawn().to_rgba(), width);
        Ok(self.area.draw(&PathElement::new(units(points), style))?)
    }

    /// A line broken into strokes and gaps of these lengths; an empty pattern is a solid line.
    pub(super) fn dashed(&self, points: &[Pixel], colour: Colour, width: f64, dash: &[f64]) -> Result<(), ChartError> {
        if dash.is_empty() {
            return self.line(points, colour, width);
        }
        strokes(points, dash).iter().try_for_each(|stroke| self.line(stroke, colour, width))
    }

    /// A filled shape, `opacity` from 0 to 1.
    pub(super) fn shape(&self, points: &[Pixel], colour: Colour, opacity: f64) -> Result<(), ChartError> {
        let style = ShapeStyle::from(colour.drawn().mix(opacity)).filled();
        Ok(self.area.draw(&Polygon::new(units(points), style))?)
    }

    pub(super) fn rectangle(&self, from: Pixel, to: Pixel, colour: Colour, opacity: f64) -> Result<(), ChartError> {
        let style = ShapeStyle::from(colour.drawn().mix(opacity)).filled();
        Ok(self.area.draw(&Rectangle::new([unit(from), unit(to)], style))?)
    }

    pub(super) fn marker(&self, at: Pixel, marker: Marker, colour: Colour) -> Result<(), ChartError> {
        let (x, y) = at;
        let offset = |points: &[Pixel]| points.iter().map(|(dx, dy)| (x + dx, y + dy)).collect::<Vec<_>>();
        match marker {
            Marker::Circle => {
                let style = ShapeStyle::from(colour.drawn()).filled();
                Ok(self.area.draw(&Circle::new(unit(at), fine(3.4), style))?)
            }
            Marker::Square => self.shape(&offset(&[(-3.0, -3.0), (3.0, -3.0), (3.0, 3.0), (-3.0, 3.0)]), colour, 1.0),
            Marker::Triangle => self.shape(&offset(&[(0.0, -4.2), (4.0, 2.8), (-4.0, 2.8)]), colour, 1.0),
            Marker::Diamond => self.shape(&offset(&[(0.0, -4.4), (4.4, 0.0), (0.0, 4.4), (-4.4, 0.0)]), colour, 1.0),
            Marker::Cross => self.crossed(&offset(&[(-3.2, -3.2), (3.2, 3.2), (-3.2, 3.2), (3.2, -3.2)]), colour),
            Marker::Plus => self.crossed(&offset(&[(0.0, -4.0), (0.0, 4.0), (-4.0, 0.0), (4.0, 0.0)]), colour),
        }
    }

    pub(super) fn text(&self, at: Pixel, side: Side, text: &str, font: Font) -> Result<(), ChartError> {
        let horizontal = match side {
            Side::Right => HPos::Left,
            Side::Left => HPos::Right,
            Side::Middle => HPos::Center,
        };
        let weight = match font.bold {
            Weight::Regular => FontStyle::Normal,
            Weight::Bold => FontStyle::Bold,
        };
        let size = font.size * FINENESS * LINE_HEIGHT;
        let style = (FontFamily::SansSerif, size, weight).into_font().color(&font.colour.drawn());
        let style = style.into_text_style(&self.area).pos(Pos::new(horizontal, VPos::Center));
        Ok(self.area.draw(&Text::new(text.to_owned(), unit(at), style))?)
    }

    fn crossed(&self, ends: &[Pixel], colour: Colour) -> Result<(), ChartError> {
        ends.chunks(2).try_for_each(|pair| self.line(pair, colour, 2.0))
    }
}

/// How wide a text is at most, whatever sans-serif face the reader has.
pub(super) fn width_of(text: &str, font: Font) -> f64 {
    let ems: f64 = text
        .chars()
        .map(|letter| match letter {
            'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' | '(' | ')' => 0.36,
            'f' | 't' | 'r' | '/' | '-' => 0.43,
            'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.95,
            letter if letter.is_uppercase() => 0.72,
            _ => 0.62,
        })
        .sum();
    let weight = match font.bold {
        Weight::Regular => 1.0,
        Weight::Bold => 1.1,
    };
    ems * font.size * weight
}

fn stroke(colour: RGBAColor, width: f64) -> ShapeStyle {
    ShapeStyle::from(colour).stroke_width(fine(width) as u32)
}

fn fine(pixels: f64) -> i32 {
    (pixels * FINENESS).round() as i32
}

fn unit(at: Pixel) -> (i32, i32) {
    (fine(at.0), fine(at.1))
}

fn units(points: &[Pixel]) -> Vec<(i32, i32)> {
    points.iter().copied().map(unit).collect()
}

/// The strokes of a broken line, the pattern running on around corners.
fn strokes(points: &[Pixel], dash: &[f64]) -> Vec<Vec<Pixel>> {
    let mut strokes = Vec::new();
    let (mut part, mut left) = (0, dash[0]);
    let mut stroke: Vec<Pixel> = points.first().copied().into_iter().collect();
    for pair in points.windows(2) {
        let (mut from, to) = (pair[0], pair[1]);
        loop {
            let rest = (to.0 - from.0).hypot(to.1 - from.1);
            if rest <= left {
                left -= rest;
                stroke.push(to);
                break;
            }
            let share = left / rest;
            from = (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share);
            stroke.push(from);
            if part % 2 == 0 {
                strokes.push(std::mem::take(&mut stroke));
            }
            part = (part + 1) % dash.len();
            left = dash[part];
            stroke = vec![from];
        }
    }
    if part % 2 == 0 && stroke.len() > 1 {
        strokes.push(stroke);
    }
    strokes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dash_pattern_runs_on_around_corners() {
        let corner = [(0.0, 0.0), (5.0, 0.0), (5.0, 7.0)];
        let expected = [vec![(0.0, 0.0), (4.0, 0.0)], vec![(5.0, 1.0), (5.0, 5.0)]];
        assert_eq!(strokes(&corner, &[4.0, 2.0]), expected);
        assert!(strokes(&[(0.0, 0.0)], &[4.0, 2.0]).is_empty());
    }
}
