//! The points of a sweep sorted into *systems*: those that differ in nothing but the load belong together and make one curve.
//! Where no rate is swept, the first swept key with numbers takes the place of the load.

use std::collections::{BTreeMap, BTreeSet};

use crate::knee::KneeReport;
use crate::report::{PointReport, Report, SweepReport};

/// A sweep, sorted.
pub(super) struct View<'a> {
    pub(super) sweep: &'a SweepReport,
    pub(super) systems: Vec<System<'a>>,
    pub(super) across: Across,
}

/// What the horizontal axis shows.
pub(super) enum Across {
    /// Requests offered per second, over all workloads.
    Rate,
    /// The value of this key.
    Key(String),
    /// The number of cards.
    Cards,
}

/// Points that differ in nothing but the load.
pub(super) struct System<'a> {
    pub(super) name: String,
    pub(super) points: Vec<(f64, &'a Report)>,
    pub(super) knee: Option<&'a KneeReport>,
}

impl<'a> View<'a> {
    /// Sorts a sweep; `None` when no system has two points.
    pub(super) fn of(sweep: &'a SweepReport) -> Option<View<'a>> {
        let varied = varied_keys(&sweep.points);
        let across = Across::of_sweep(sweep, &varied)?;
        let distinct = distinct_devices(&sweep.points);
        let mut systems: BTreeMap<(Option<u32>, String), System<'a>> = BTreeMap::new();
        for point in &sweep.points {
            let Some(x) = across.of(point) else { continue };
            let settings = settings(point, &varied, &across);
            let cards = match across {
                Across::Rate | Across::Key(_) => Some(point.devices),
                Across::Cards => None,
            };
            let system = systems.entry((cards, settings.clone())).or_insert_with(|| System {
                name: system_name(cards, distinct, &settings),
                points: Vec::new(),
                knee: sweep.knees.iter().find(|knee| belongs(knee, point)),
            });
            system.points.push((x, &point.report));
        }
        let mut systems: Vec<System> = systems.into_values().collect();
        systems.iter_mut().for_each(|system| system.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
        systems.iter().any(|system| system.points.len() > 1).then_some(View { sweep, systems, across })
    }

    pub(super) fn reports(&self) -> impl Iterator<Item = &'a Report> + '_ {
        self.sweep.points.iter().map(|point| &point.report)
    }

    pub(super) fn workloads(&self) -> Vec<String> {
        let names = self.reports().flat_map(|report| report.workload.iter().map(|(name, _)| name.to_owned()));
        let mut seen = BTreeSet::new();
        names.filter(|name| seen.insert(name.clone())).collect()
    }

    pub(super) fn batching_models(&self) -> BTreeSet<String> {
        let batching = |report: &'a Report| {
            report.model.iter().filter(|(_, model)| model.batch_sizes.iter().any(|one| one.size > 1))
        };
        self.reports().flat_map(batching).map(|(name, _)| name.to_owned()).collect()
    }
}

impl Across {
    /// The load where it is swept; else the first key with numbers; else the number of cards.
    fn of_sweep(sweep: &SweepReport, varied: &[String]) -> Option<Across> {
        if varied.iter().any(|key| is_rate(key)) {
            return Some(Across::Rate);
        }
        let key = varied.iter().find(|key| is_numeric(&sweep.points, key)).map(|key| Across::Key(key.clone()));
        key.or_else(|| (distinct_devices(&sweep.points) > 1).then_some(Across::Cards))
    }

    fn of(&self, point: &PointReport) -> Option<f64> {
        match self {
            Across::Rate => {
                Some(point.report.workload.iter().map(|(_, workload)| workload.flow.offered_rate.mean).sum())
            }
            Across::Key(key) => point.set.get(key)?.as_f64(),
            Across::Cards => Some(f64::from(point.devices)),
        }
    }
}

/// Keys that take more than one value, in order; without numbers of cards, which every point tells in another way.
fn varied_keys(points: &[PointReport]) -> Vec<String> {
    let keys: BTreeSet<&String> = points.iter().flat_map(|point| point.set.keys()).collect();
    let varies = |key: &&&String| points.windows(2).any(|pair| pair[0].set.get(**key) != pair[1].set.get(**key));
    keys.iter().filter(varies).filter(|key| !is_card_count(key)).map(|key| (*key).clone()).collect()
}

fn is_rate(key: &str) -> bool {
    key.ends_with("arrivals.rate")
}

fn is_card_count(key: &str) -> bool {
    key.starts_with("devices.") && key.ends_with(".count")
}

fn is_numeric(points: &[PointReport], key: &str) -> bool {
    points.iter().all(|point| point.set.get(key).is_some_and(serde_json::Value::is_number))
}

fn distinct_devices(points: &[PointReport]) -> usize {
    points.iter().map(|point| point.devices).collect::<BTreeSet<_>>().len()
}

/// What sets a point's system apart besides its number of cards.
fn settings(point: &PointReport, varied: &[String], across: &Across) -> String {
    let apart = |key: &&String| match across {
        Across::Rate => !is_rate(key),
        Across::Key(shown) => *key != shown,
        Across::Cards => true,
    };
    let words = varied.iter().filter(apart).filter_map(|key| {
        let value = point.set.get(key)?;
        let short = key.rsplit('.').next().unwrap_or(key);
        Some(format!("{short} {}", value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
    });
    words.collect::<Vec<_>>().join(", ")
}

fn system_name(cards: Option<u32>, distinct: usize, settings: &str) -> String {
    let cards = match cards {
        None => return if settings.is_empty() { "all".to_owned() } else { settings.to_owned() },
        Some(1) => "1 card".to_owned(),
        Some(several) => format!("{several} cards"),
    };
    match (distinct, settings.is_empty()) {
        (_, true) => cards,
        (1, false) => settings.to_owned(),
        (_, false) => format!("{cards}, {settings}"),
    }
}

/// Whether a knee is that of the point's system: what it says of the settings holds there.
fn belongs(knee: &KneeReport, point: &PointReport) -> bool {
    let holds = |(key, value): (&String, &serde_json::Value)| is_rate(key) || point.set.get(key) == Some(value);
    knee.devices == point.devices && knee.set.iter().all(holds)
}
