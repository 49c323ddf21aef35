//! The terminal in which a daemon is watched. A thread asks; this one draws and listens to keys, so a daemon that does not answer
//! keeps nobody from leaving.

use std::{
    io,
    sync::mpsc::{self, Receiver, Sender},
    thread,
    time::{Duration, Instant},
};

use ratatui::{
    DefaultTerminal,
    crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers},
};
use windtunnel_live::operator::{AskError, Events, Operator, Status};
use windtunnel_sim::Control;

use super::screen::{Palette, Screen};

/// How often the daemon is asked.
const EVERY: Duration = Duration::from_millis(500);
/// How long a key is waited for before the picture is drawn anew.
const TICK: Duration = Duration::from_millis(100);
/// No more events are kept.
const KEPT: usize = 1_000;

type News = Result<(Status, Events), AskError>;

/// Watches until a key or a signal ends it. The terminal is given back on every way out, a panic too.
pub fn watch(operator: Operator, address: String, first: (Status, Events), control: &Control) -> io::Result<()> {
    let (say, news) = mpsc::channel();
    let mut seen = Seen { now_ms: first.0.now_ms, last: first.1.last };
    // It ends with the first news that nobody takes.
    thread::spawn(move || ask(&operator, &mut seen, &say));
    let palette = if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
        Palette::Plain
    } else {
        Palette::Colours
    };
    let (status, events) = (first.0, first.1.lines);
    let mut screen = Screen { address, status, events, age: Duration::ZERO, trouble: None, scrolled: 0, palette };
    let mut terminal = ratatui::try_init()?;
    let watched = draw(&mut terminal, &mut screen, &news, control);
    ratatui::try_restore().and(watched)
}

/// How far a daemon was listened to.
struct Seen {
    now_ms: u64,
    last: u64,
}

fn ask(operator: &Operator, seen: &mut Seen, say: &Sender<News>) {
    loop {
        thread::sleep(EVERY);
        let news = operator.status().and_then(|status| {
            let events = seen.following(status.now_ms, |after| operator.events(after))?;
            Ok((status, events))
        });
        if say.send(news).is_err() {
            return;
        }
    }
}

impl Seen {
    /// What came since. A daemon that was started anew counts from the beginning again, and all it has is new.
    fn following(&mut self, now_ms: u64, ask: impl Fn(u64) -> Result<Events, AskError>) -> Result<Events, AskError> {
        let mut events = ask(if now_ms < self.now_ms { 0 } else { self.last })?;
        if events.last < self.last && now_ms >= self.now_ms {
            events = ask(0)?;
        }
        *self = Seen { now_ms, last: events.last };
        Ok(events)
    }
}

fn draw(
    terminal: &mut DefaultTerminal,
    screen: &mut Screen,
    news: &Receiver<News>,
    control: &Control,
) -> io::Result<()> {
    let mut seen = Instant::now();
    while !control.is_interrupted() {
        while let Ok(news) = news.try_recv() {
            take(screen, news, &mut seen);
        }
        screen.age = seen.elapsed();
        terminal.draw(|frame| screen.draw(frame))?;
        if event::poll(TICK)? && ends(&event::read()?, screen) {
            break;
        }
    }
    Ok(())
}

fn take(screen: &mut Screen, news: News, seen: &mut Instant) {
    match news {
        Ok((status, events)) => {
            screen.status = status;
            screen.events.extend(events.lines);
            let old = screen.events.len().saturating_sub(KEPT);
            screen.events.drain(..old);
            screen.trouble = None;
            *seen = Instant::now();
        }
        Err(AskError::Silent { why, .. } | AskError::Late { why, .. } | AskError::Foreign { why, .. }) => {
            screen.trouble = Some(why)
        }
        Err(AskError::Refused { message, .. }) => screen.trouble = Some(message),
    }
}

/// Whether a key ends it.
fn ends(event: &Event, screen: &mut Screen) -> bool {
    let Event::Key(key) = event else { return false };
    if key.kind == KeyEventKind::Release {
        return false;
    }
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => return true,
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return true,
        KeyCode::Up | KeyCode::Char('k') => screen.scrolled = screen.scrolled.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => screen.scrolled = screen.scrolled.saturating_add(1),
        KeyCode::PageUp => screen.scrolled = screen.scrolled.saturating_sub(10),
        KeyCode::PageDown => screen.scrolled = screen.scrolled.saturating_add(10),
        KeyCode::Home => screen.scrolled = 0,
        KeyCode::End => screen.scrolled = usize::MAX,
        _ => {}
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_was_started_anew_is_listened_to_from_its_beginning() {
        let daemon = |lines: &[&str]| {
            let lines: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
            move |after: u64| {
                let after = usize::try_from(after).unwrap_or(usize::MAX);
                Ok(Events { last: lines.len() as u64, lines: lines.iter().skip(after).cloned().collect() })
            }
        };
        let told = |seen: &mut Seen, now_ms, lines: &[&str]| {
            seen.following(now_ms, daemon(lines)).unwrap_or_else(|_| panic!("it answers")).lines
        };
        let mut seen = Seen { now_ms: 500, last: 2 };
        assert_eq!(told(&mut seen, 1000, &["a", "b", "c"]), ["c"]);
        assert_eq!(told(&mut seen, 1500, &["a", "b", "c"]), [""; 0]);
        // It runs for a shorter time than before, whatever it has said meanwhile.
        assert_eq!(told(&mut seen, 200, &["d", "e", "f", "g"]), ["d", "e", "f", "g"]);
        // It was started anew between the two questions.
        assert_eq!(told(&mut seen, 700, &["h"]), ["h"]);
        assert_eq!(told(&mut seen, 900, &["h", "i"]), ["i"]);
    }
}
