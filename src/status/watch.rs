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
    let last = first.1.last;
    // It ends with the first news that nobody takes.
    thread::spawn(move || ask(&operator, last, &say));
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

fn ask(operator: &Operator, mut last: u64, say: &Sender<News>) {
    loop {
        thread::sleep(EVERY);
        let news = operator.status().and_then(|status| Ok((status, operator.events(last)?)));
        if let Ok((_, events)) = &news {
            last = events.last;
        }
        if say.send(news).is_err() {
            return;
        }
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
        Err(AskError::Silent { why, .. } | AskError::Foreign { why, .. }) => screen.trouble = Some(why),
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
