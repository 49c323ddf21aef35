//! The page: what stands on it, line by line.

use windtunnel_core::{Mode, MonitorHealth, PressureLevel, Tier};
use windtunnel_live::operator::{DevicePicture, Holding, QueuePicture, Resident, Status};

use super::bar::bar;

/// A line of the page.
pub type Line = Vec<Piece>;

/// Letters of one tone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub text: String,
    pub tone: Tone,
}

/// What letters stand for, which a terminal may show in colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Heading,
    Dim,
    Ours,
    Coming,
    Others,
    Alarm,
}

impl Piece {
    pub fn new(text: impl Into<String>, tone: Tone) -> Piece {
        Piece { text: text.into(), tone }
    }
}

/// The longest bar; longer ones say no more.
const LONGEST_BAR: usize = 50;
/// Below this width, what a terminal of the usual 80 letters has room for is left out.
const NARROW: usize = 64;

/// Devices and queues, for `width` letters a line.
pub fn page(status: &Status, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for device in &status.devices {
        of_device(device, width, &mut lines);
        lines.push(Vec::new());
    }
    queues(&status.queues, width, &mut lines);
    lines
}

/// Lines as plain text, without blanks at their ends.
pub fn text(lines: &[Line]) -> String {
    let line = |line: &Line| {
        let whole: String = line.iter().map(|piece| piece.text.as_str()).collect();
        format!("{}\n", whole.trim_end())
    };
    lines.iter().map(line).collect()
}

fn of_device(device: &DevicePicture, width: usize, lines: &mut Vec<Line>) {
    let mode = match device.mode {
        Mode::Interactive => "  interactive mode",
        Mode::Idle => "  idle mode",
    };
    let mut head = vec![Piece::new(&device.device, Tone::Heading), Piece::new(mode, Tone::Plain)];
    if let Some(model) = &device.batch_turn {
        head.push(Piece::new(format!(", batch turn of {model}"), Tone::Plain));
    }
    head.extend(trouble(&device.memory));
    lines.push(head);
    of_memory(&device.memory, width, lines);
    if device.residents.is_empty() {
        lines.push(vec![Piece::new("  no model is loaded", Tone::Dim)]);
    } else {
        residents(&device.residents, width, lines);
    }
}

/// What is not as it should be with its memory.
fn trouble(memory: &Holding) -> Option<Piece> {
    let pressure = match memory.pressure {
        PressureLevel::Normal => None,
        PressureLevel::Warn => Some("  memory is scarce"),
        PressureLevel::Critical => Some("  memory is exhausted"),
    };
    let monitor = match memory.monitor {
        MonitorHealth::Alive => None,
        MonitorHealth::Stale => Some("  memory cannot be read: nothing is loaded"),
    };
    monitor.or(pressure).map(|words| Piece::new(words, Tone::Alarm))
}

fn of_memory(memory: &Holding, width: usize, lines: &mut Vec<Line>) {
    let bar = bar(memory, width.saturating_sub(4).clamp(1, LONGEST_BAR));
    if !bar.is_empty() {
        lines.push([vec![Piece::new("  ", Tone::Plain)], bar].concat());
    }
    let used = memory.booked.saturating_add(memory.foreign);
    let whole = match memory.budget {
        Some(budget) => format!("  {} of {}", size(used), size(budget)),
        None => format!("  {}, without bound", size(used)),
    };
    let coming = memory.coming.min(memory.booked);
    let parts = [
        (memory.booked - coming, "ours", Tone::Ours),
        (coming, "becoming free", Tone::Coming),
        (memory.foreign, "of others", Tone::Others),
    ];
    let parts = parts.into_iter().filter(|(bytes, name, _)| *bytes > 0 || *name == "ours");
    let parts = parts.map(|(bytes, name, tone)| Piece::new(format!("{} {name}", size(bytes)), tone));
    if width < NARROW {
        lines.push(vec![Piece::new(whole, Tone::Plain)]);
        lines.extend(parts.map(|part| vec![Piece::new("    ", Tone::Plain), part]));
    } else {
        let mut line = vec![Piece::new(format!("{whole}: "), Tone::Plain)];
        line.extend(parts.flat_map(|part| [part, Piece::new(", ", Tone::Plain)]));
        line.pop();
        lines.push(line);
    }
    if memory.owed > 0 {
        lines.push(vec![Piece::new(format!("  {} promised to loads that wait", size(memory.owed)), Tone::Coming)]);
    }
}

fn residents(residents: &[Resident], width: usize, lines: &mut Vec<Line>) {
    let mut rows = vec![cells(&["MODEL", "STATE", "MEMORY", "BUSY", "TIER", "COST TO EVICT"])];
    rows.extend(residents.iter().map(|one| {
        let tier = match one.tier {
            Tier::Cold => "cold",
            Tier::Hot => "hot",
            Tier::Pinned => "pinned",
        };
        let slots = format!("{} of {}", one.running, one.running.saturating_add(one.free));
        cells(&[&one.model, &one.stage, &size(one.booked), &slots, tier, &time(one.eviction_cost)])
    }));
    if width < NARROW {
        rows.iter_mut().for_each(|row| row.truncate(4));
    }
    lines.extend(table(&rows, width));
}

fn queues(queues: &[QueuePicture], width: usize, lines: &mut Vec<Line>) {
    if queues.is_empty() {
        return lines.push(vec![Piece::new("nobody waits", Tone::Dim)]);
    }
    let jobs = queues.iter().fold(0, |sum: u64, queue| sum.saturating_add(queue.jobs));
    lines.push(vec![Piece::new(format!("waiting: {jobs}"), Tone::Heading)]);
    let mut rows = vec![cells(&["CLASS", "JOBS", "AGE", "FOR"])];
    rows.extend(queues.iter().map(|one| {
        cells(&[one.class.name(), &one.jobs.to_string(), &time(one.without_progress_ms), &one.variants.join(", ")])
    }));
    let mut rows = table(&rows, width).into_iter();
    lines.extend(rows.next());
    for (row, queue) in rows.zip(queues) {
        lines.push(row);
        let why = format!("    {}: {}", queue.reason, queue.why);
        lines.push(vec![Piece::new(cut(&why, width), Tone::Dim)]);
    }
}

fn cells(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Rows as lines, the first one a heading. What is too long ends in an ellipsis.
fn table(rows: &[Vec<String>], width: usize) -> Vec<Line> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let wide = |column: usize| rows.iter().filter_map(|row| Some(row.get(column)?.chars().count())).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..columns).map(wide).collect();
    // A name may be as long as it likes, but not at the cost of all others.
    let most = (width / 4).max(8);
    let last = columns.saturating_sub(1);
    widths.iter_mut().take(last).for_each(|width| *width = (*width).min(most));
    let line = |(at, row): (usize, &Vec<String>)| {
        let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{:width$}", cut(cell, *width)));
        let line = format!("  {}", padded.collect::<Vec<_>>().join("  "));
        vec![Piece::new(cut(line.trim_end(), width), if at == 0 { Tone::Dim } else { Tone::Plain })]
    };
    rows.iter().enumerate().map(line).collect()
}

/// The text, or as much of it as `width` letters hold.
pub fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// Bytes as people say them.
fn size(bytes: u64) -> String {
    let (scale, name) = if bytes >= 1 << 30 { (30, "GiB") } else { (20, "MiB") };
    format!("{:.1} {name}", bytes as f64 / f64::from(1_u32 << scale))
}

/// Milliseconds as people say them.
pub fn time(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{:.1} s", millis as f64 / 1e3),
        60_000..3_600_000 => format!("{} m {} s", millis / 60_000, millis / 1_000 % 60),
        _ => format!("{} h {} m", millis / 3_600_000, millis / 60_000 % 60),
    }
}

#[cfg(test)]
pub mod tests {
    use windtunnel_core::Class;

    use super::*;

    const GIB: u64 = 1 << 30;

    /// A busy daemon.
    pub fn busy() -> Status {
        let memory = |budget, foreign| Holding {
            budget,
            booked: 9 * GIB + GIB / 2,
            coming: 2 * GIB,
            foreign,
            owed: 5 * GIB,
            read_ms_ago: Some(300),
            monitor: MonitorHealth::Alive,
            pressure: PressureLevel::Normal,
        };
        let resident = |instance, model: &str, stage: &str, tier, booked, eviction_cost, running, free| Resident {
            instance,
            model: model.to_owned(),
            stage: stage.to_owned(),
            tier,
            booked,
            eviction_cost,
            running,
            free,
        };
        let queue = |class, jobs, without_progress_ms, model: &str, reason: &str, why: &str| QueuePicture {
            variants: vec![model.to_owned()],
            class,
            jobs,
            inputs: jobs,
            head: 17,
            without_progress_ms,
            reason: reason.to_owned(),
            why: why.to_owned(),
        };
        Status {
            phase: "serving".to_owned(),
            now_ms: 3_723_000,
            devices: vec![
                DevicePicture {
                    device: "gpu0".to_owned(),
                    mode: Mode::Interactive,
                    batch_turn: None,
                    memory: memory(Some(15 * GIB + GIB / 2), GIB),
                    residents: vec![
                        resident(1, "gemma4-12b", "ready", Tier::Hot, 6 * GIB, 7_350, 2, 0),
                        resident(
                            2,
                            "a-model-with-a-name-that-never-seems-to-end",
                            "draining",
                            Tier::Cold,
                            2 * GIB,
                            0,
                            1,
                            0,
                        ),
                        resident(3, "nomic", "ready", Tier::Pinned, GIB + GIB / 2, 120_000, 0, 4),
                    ],
                },
                DevicePicture {
                    device: "cpu".to_owned(),
                    mode: Mode::Idle,
                    batch_turn: Some("nomic".to_owned()),
                    memory: Holding { monitor: MonitorHealth::Stale, booked: 0, coming: 0, owed: 0, ..memory(None, 0) },
                    residents: Vec::new(),
                },
            ],
            queues: vec![
                queue(Class::Interactive, 1, 1_250, "qwen3-14b", "memory_pending", "5.0 GiB of memory are awaited"),
                queue(
                    Class::Batch,
                    412,
                    63_000,
                    "nomic",
                    "interactive_mode",
                    "somebody is talking to gemma4-12b on gpu0",
                ),
            ],
        }
    }

    #[test]
    fn a_busy_daemon_on_a_page_of_eighty_letters() {
        insta::assert_snapshot!(text(&page(&busy(), 80)));
    }

    #[test]
    fn a_narrow_page_leaves_out_what_has_no_room() {
        let page = page(&busy(), 40);
        insta::assert_snapshot!(text(&page));
        let tables = page.iter().filter(|line| line.len() == 1);
        assert!(tables.flatten().all(|piece| piece.text.chars().count() <= 40));
    }

    #[test]
    fn an_idle_daemon_says_that_nothing_happens() {
        let status = Status { phase: "serving".to_owned(), now_ms: 0, devices: Vec::new(), queues: Vec::new() };
        assert_eq!(text(&page(&status, 80)), "nobody waits\n");
    }
}
