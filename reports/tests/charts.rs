//! Charts as documents: the same bytes every time, every word on the paper and none on another or on the data.

use windtunnel_reports::chart::{Axis, BarChart, BarSeries, CurveChart, CurvePoint, Look, Mark, Series, Spacing, Unit};

#[test]
fn the_same_figures_give_the_same_bytes() {
    assert_eq!(latency().to_svg().expect("drawn"), latency().to_svg().expect("drawn"));
    assert_eq!(batches().to_svg().expect("drawn"), batches().to_svg().expect("drawn"));
}

#[test]
fn a_document_says_what_it_is_and_adapts_to_light_dark_and_width() {
    let svg = CurveChart { title: "a < b & \"c\"".to_owned(), ..latency() }.to_svg().expect("drawn");
    assert!(svg.contains("<title>a &lt; b &amp; \"c\"</title>"), "{}", &svg[..400]);
    assert!(svg.contains("Marked: p99 up to 1811/s; capacity 1882/s; target 50 ms."));
    assert!(svg.contains("prefers-color-scheme:dark") && svg.contains("max-width:100%") && svg.contains("viewBox="));
    assert_eq!(svg.matches("<svg").count(), 1);
    assert_eq!(svg.matches("</svg>").count(), 1);
    // every colour that is drawn has a counterpart for the dark
    for colour in svg.split("=\"#").skip(1).map(|rest| &rest[..6]) {
        assert!(svg.contains(&format!("[fill=\"#{colour}\"]{{fill:")), "{colour}");
    }
}

#[test]
fn no_word_leaves_the_paper_or_stands_on_another() {
    for (name, svg) in all() {
        let words = words(&svg);
        assert!(words.len() > 8, "{name}: {words:?}");
        for (index, word) in words.iter().enumerate() {
            assert!(
                word.left >= 0.0 && word.right <= 760.0 && word.top >= 0.0 && word.bottom <= 450.0,
                "{name}: {word:?}"
            );
            for other in &words[..index] {
                assert!(!word.touches(other), "{name}: {word:?} on {other:?}");
            }
        }
    }
}

#[test]
fn no_word_stands_on_the_data() {
    for (name, svg) in all() {
        let (left, right, top, bottom) = plot(&svg);
        let inside = |word: &&Word| {
            word.right > left + 1.0 && word.left < right - 1.0 && word.bottom > top + 1.0 && word.top < bottom - 1.0
        };
        let words = words(&svg);
        assert_eq!(words.iter().find(inside), None, "{name}");
    }
}

#[test]
fn curves_that_end_together_are_named_at_their_ends_and_others_in_a_strip() {
    let together = CurveChart { verticals: Vec::new(), ..queue() }.to_svg().expect("drawn");
    let at = |svg: &str, name: &str| words(svg).into_iter().find(|word| word.text == name).expect("named");
    assert!(at(&together, "waiting").left > 600.0);
    let mut apart = queue();
    apart.series[1].points.truncate(20);
    let apart = apart.to_svg().expect("drawn");
    assert!(at(&apart, "waiting").left < 400.0 && at(&apart, "waiting").bottom < plot(&apart).2);
}

#[test]
fn an_unstable_rate_has_a_sign_instead_of_a_value() {
    let svg = latency().to_svg().expect("drawn");
    assert!(svg.contains("unstable: no steady value"));
    let mut stable = latency();
    stable.series.iter_mut().for_each(|series| series.unsettled.clear());
    assert!(!stable.to_svg().expect("drawn").contains("unstable"));
}

#[test]
fn a_chart_without_data_is_still_a_document() {
    let nothing = CurveChart { series: Vec::new(), verticals: Vec::new(), horizontals: Vec::new(), ..latency() };
    assert!(nothing.to_svg().expect("drawn").ends_with("</svg>\n"));
    let empty = BarChart { series: Vec::new(), ..batches() };
    assert!(empty.to_svg().expect("drawn").ends_with("</svg>\n"));
}

fn all() -> Vec<(&'static str, String)> {
    let crowded = CurveChart {
        verticals: [60.0, 1700.0, 1811.0, 1840.0, 1882.0]
            .map(|at| Mark::exact(at, format!("what is at {at}")))
            .to_vec(),
        ..latency()
    };
    let drawn = |chart: CurveChart| chart.to_svg().expect("drawn");
    vec![
        ("latency", drawn(latency())),
        ("crowded", drawn(crowded)),
        ("queue", drawn(queue())),
        ("batches", batches().to_svg().expect("drawn")),
    ]
}

fn axis(label: &str, unit: Unit, spacing: Spacing) -> Axis {
    Axis { label: label.to_owned(), unit, spacing }
}

fn latency() -> CurveChart {
    let rates = || (1..=9).map(|n| f64::from(n) * 200.0);
    let curve = |name: &str, factor: f64| Series {
        name: name.to_owned(),
        points: rates()
            .map(|rate| {
                let mean = factor / (1882.0 - rate);
                CurvePoint { x: rate, mean, low: Some(mean * 0.9), high: Some(mean * 1.1) }
            })
            .collect(),
        unsettled: vec![2000.0, 2200.0, 2400.0],
        look: Look::Points,
    };
    CurveChart {
        title: "Median and p99 latency, against offered rate".to_owned(),
        subtitle: "one card that batches dynamically; 10 replications of 600 s; bands are 95% intervals".to_owned(),
        x: axis("offered rate (requests/s)", Unit::Number, Spacing::Linear),
        y: axis("latency of completed requests", Unit::Seconds, Spacing::Logarithmic),
        series: vec![curve("p50", 1.5), curve("p99", 4.0)],
        verticals: vec![
            Mark { at: 1811.0, between: Some((1803.0, 1821.0)), label: "p99 up to 1811/s".to_owned() },
            Mark::exact(1882.0, "capacity 1882/s"),
        ],
        verticals_are: None,
        horizontals: vec![Mark::exact(0.05, "target 50 ms")],
        diagonal: None,
    }
}

fn queue() -> CurveChart {
    let curve = |name: &str, height: f64| Series {
        name: name.to_owned(),
        points: (0..60).map(|n| CurvePoint::plain(f64::from(n), height * (1.5 + (f64::from(n) / 5.0).sin()))).collect(),
        unsettled: Vec::new(),
        look: Look::Line,
    };
    CurveChart {
        title: "Requests over time".to_owned(),
        subtitle: String::new(),
        x: axis("time since the run began", Unit::Seconds, Spacing::Linear),
        y: axis("requests", Unit::Number, Spacing::Linear),
        series: vec![curve("in the system", 8.0), curve("waiting", 7.5)],
        verticals: vec![Mark::exact(3.0, "warm-up ends")],
        verticals_are: None,
        horizontals: Vec::new(),
        diagonal: None,
    }
}

fn batches() -> BarChart {
    let bars = |scale: f64| (1..=32).map(|n| (f64::from(n), scale * (-f64::from(n) / 6.0).exp())).collect();
    BarChart {
        title: "Batch sizes of m".to_owned(),
        subtitle: "1500 requests/s".to_owned(),
        x: axis("inputs in the batch", Unit::Number, Spacing::Linear),
        y: axis("share", Unit::Share, Spacing::Linear),
        series: vec![
            BarSeries { name: "of batches".to_owned(), bars: bars(0.2) },
            BarSeries { name: "of inputs".to_owned(), bars: bars(0.1) },
        ],
        verticals: Vec::new(),
    }
}

/// A word and the box it fills, in pixels.
#[derive(Clone, Debug, PartialEq)]
struct Word {
    text: String,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Word {
    fn touches(&self, other: &Word) -> bool {
        self.left < other.right && other.left < self.right && self.top < other.bottom && other.top < self.bottom
    }
}

/// All words of a document, each taken as wide as in a common face (half an em a letter on average).
fn words(svg: &str) -> Vec<Word> {
    let word = |element: &str| {
        let (head, rest) = element.split_once('>').expect("a tag");
        let text = rest.split("</text>").next().expect("an end").trim().to_owned();
        let (x, y) = (number(head, "x") / 10.0, number(head, "y") / 10.0);
        let size = number(head, "font-size") / 10.0;
        let width = text.chars().count() as f64 * size * 0.5;
        let left = match attribute(head, "text-anchor") {
            "start" => x,
            "end" => x - width,
            _ => x - width / 2.0,
        };
        Word { text, left, right: left + width, top: y - size * 0.45, bottom: y + size * 0.45 }
    };
    svg.split("<text ").skip(1).map(word).collect()
}

/// Left, right, top and bottom of the data's place: where the grid lines run.
fn plot(svg: &str) -> (f64, f64, f64, f64) {
    let grid = |line: &&str| line.starts_with("<polyline") && line.contains("stroke=\"#E1E5EA\"");
    let mut ends = (f64::INFINITY, 0.0_f64, f64::INFINITY, 0.0_f64);
    for line in svg.lines().filter(grid) {
        for pair in attribute(line, "points").split_whitespace() {
            let (x, y) = pair.split_once(',').expect("a point");
            let (x, y): (f64, f64) = (x.parse().expect("x"), y.parse().expect("y"));
            ends = (ends.0.min(x / 10.0), ends.1.max(x / 10.0), ends.2.min(y / 10.0), ends.3.max(y / 10.0));
        }
    }
    ends
}

fn attribute<'a>(head: &'a str, name: &str) -> &'a str {
    let (_, rest) = head.split_once(&format!("{name}=\"")).expect("the attribute");
    rest.split('"').next().expect("its end")
}

fn number(head: &str, name: &str) -> f64 {
    let padded = format!(" {head}");
    attribute(&padded, &format!(" {name}")).parse().expect("a number")
}
