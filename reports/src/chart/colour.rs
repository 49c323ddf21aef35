//! Colours, dash patterns and markers.
//!
//! The drawing itself is done in the colours for a light background, each used for one purpose only. For a dark one a style
//! sheet replaces them, colour by colour (see `finish`).

use plotters::style::RGBColor;

/// A colour on light and on dark backgrounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Colour {
    light: u32,
    dark: u32,
}

pub(super) const PAPER: Colour = Colour { light: 0xFFFFFF, dark: 0x0D1117 };
pub(super) const INK: Colour = Colour { light: 0x1B1F24, dark: 0xE6EDF3 };
pub(super) const MUTED: Colour = Colour { light: 0x57606A, dark: 0x9DA7B3 };
pub(super) const GRID: Colour = Colour { light: 0xE1E5EA, dark: 0x262C34 };
pub(super) const AXIS: Colour = Colour { light: 0x8C959F, dark: 0x6E7681 };
pub(super) const MARK: Colour = Colour { light: 0x57606B, dark: 0xB1BAC4 };

/// Colours of curves, in the order of use: blue, vermilion, bluish green, reddish purple, amber, slate.
pub(super) const SERIES: [Colour; 6] = [
    Colour { light: 0x0067A8, dark: 0x58B4F0 },
    Colour { light: 0xC14A00, dark: 0xFF9350 },
    Colour { light: 0x007A58, dark: 0x35D0A0 },
    Colour { light: 0xA3407C, dark: 0xEE9CCB },
    Colour { light: 0x8A6200, dark: 0xE9BE45 },
    Colour { light: 0x4A5561, dark: 0xC3CBD4 },
];

/// Dash patterns of curves: lengths of strokes and gaps; the first is solid.
pub(super) const DASHES: [&[f64]; 6] =
    [&[], &[9.0, 4.0], &[2.5, 3.0], &[10.0, 3.0, 2.5, 3.0], &[5.0, 3.0], &[14.0, 4.0]];

/// The dash pattern of lines that mark something.
pub(super) const MARK_DASH: &[f64] = &[4.0, 3.0];

/// The shape drawn at a measured point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    Cross,
    Plus,
}

pub(super) const MARKERS: [Marker; 6] =
    [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Cross, Marker::Plus];

impl Colour {
    pub(super) fn drawn(self) -> RGBColor {
        let [_, red, green, blue] = self.light.to_be_bytes();
        RGBColor(red, green, blue)
    }
}

/// The style sheet's rules for a dark background, for elements inside `scope`.
pub(super) fn dark_rules(scope: &str) -> String {
    let all = [PAPER, INK, MUTED, GRID, AXIS, MARK].into_iter().chain(SERIES);
    let rule = |colour: Colour| {
        let Colour { light, dark } = colour;
        format!(
            "{scope} [fill=\"#{light:06X}\"]{{fill:#{dark:06X}}}{scope} [stroke=\"#{light:06X}\"]{{stroke:#{dark:06X}}}\n"
        )
    };
    all.map(rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance and contrast as the Web Content Accessibility Guidelines define them.
    fn luminance(rgb: u32) -> f64 {
        let linear = |byte: u8| {
            let value = f64::from(byte) / 255.0;
            if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        let [_, red, green, blue] = rgb.to_be_bytes();
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    }

    fn contrast(a: u32, b: u32) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn text_in_every_colour_can_be_read_on_both_backgrounds() {
        for colour in [INK, MUTED, MARK].into_iter().chain(SERIES) {
            assert!(contrast(colour.light, PAPER.light) >= 4.5, "{:06X} on light", colour.light);
            assert!(contrast(colour.dark, PAPER.dark) >= 4.5, "{:06X} on dark", colour.dark);
        }
    }

    #[test]
    fn no_light_colour_has_two_dark_ones() {
        let mut lights: Vec<u32> =
            [PAPER, INK, MUTED, GRID, AXIS, MARK].into_iter().chain(SERIES).map(|c| c.light).collect();
        lights.sort_unstable();
        assert!(lights.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
