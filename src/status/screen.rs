//! The page on a terminal: a head, the page, the latest events, and what the keys do.

use std::time::Duration;

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::Paragraph,
};
use windtunnel_live::operator::Status;

use super::page::{self, Piece, Tone, cut, page, time};

/// What is shown.
#[derive(Clone, Debug)]
pub struct Screen {
    pub address: String,
    pub status: Status,
    /// Lines of what was decided, the oldest first.
    pub events: Vec<String>,
    /// How old the picture is.
    pub age: Duration,
    /// Why there is no newer one.
    pub trouble: Option<String>,
    /// Lines of the page that were scrolled away.
    pub scrolled: usize,
    pub palette: Palette,
}

/// Whether tones are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Palette {
    Colours,
    /// Bold and dim letters only: somebody asked for no colours.
    Plain,
}

/// The least height of a terminal that has room for events.
const ROOM_FOR_EVENTS: u16 = 14;

impl Screen {
    /// Draws all of it, and takes back scrolling that would leave the page.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let lines = page(&self.status, usize::from(area.width));
        let wanted = u16::try_from(lines.len()).unwrap_or(u16::MAX);
        let events = if area.height < ROOM_FOR_EVENTS {
            0
        } else {
            (area.height / 3).max(area.height.saturating_sub(wanted + 3))
        };
        let parts = [Constraint::Length(1), Constraint::Min(0), Constraint::Length(events), Constraint::Length(1)];
        let [head, body, below, foot] = Layout::vertical(parts).areas(area);
        self.head(frame, head);
        self.scrolled = self.scrolled.min(lines.len().saturating_sub(usize::from(body.height)));
        let shown = lines.iter().skip(self.scrolled).take(usize::from(body.height));
        frame.render_widget(Paragraph::new(shown.map(|line| self.line(line)).collect::<Vec<_>>()), body);
        self.events(frame, below);
        self.foot(frame, foot, lines.len() > usize::from(body.height));
    }

    fn head(&self, frame: &mut Frame<'_>, area: Rect) {
        let up = time(self.status.now_ms / 1_000 * 1_000);
        let text = format!("windtunnel {}, {} for {up}", self.address, self.status.phase);
        frame.render_widget(self.line(&[Piece::new(cut(&text, area.width.into()), Tone::Heading)]), area);
    }

    fn events(&self, frame: &mut Frame<'_>, area: Rect) {
        let Some(room) = usize::from(area.height).checked_sub(1) else { return };
        let latest = self.events.iter().skip(self.events.len().saturating_sub(room));
        let width = usize::from(area.width);
        let head = vec![Piece::new("events", Tone::Heading)];
        let lines = std::iter::once(head).chain(latest.map(|event| vec![Piece::new(cut(event, width), Tone::Plain)]));
        frame.render_widget(Paragraph::new(lines.map(|line| self.line(&line)).collect::<Vec<_>>()), area);
    }

    fn foot(&self, frame: &mut Frame<'_>, area: Rect, more: bool) {
        let keys = if more { "q ends, ↑ ↓ scroll" } else { "q ends" };
        let piece = match &self.trouble {
            Some(why) => Piece::new(format!("{keys}; no news for {} s: {why}", self.age.as_secs()), Tone::Alarm),
            None => Piece::new(keys, Tone::Dim),
        };
        let piece = Piece { text: cut(&piece.text, area.width.into()), ..piece };
        frame.render_widget(self.line(&[piece]), area);
    }

    fn line(&self, pieces: &[page::Piece]) -> Line<'static> {
        let span = |piece: &Piece| Span::styled(piece.text.clone(), self.style(piece.tone));
        Line::from(pieces.iter().map(span).collect::<Vec<_>>())
    }

    fn style(&self, tone: Tone) -> Style {
        let plain = Style::new();
        let coloured = |colour: Color| match self.palette {
            Palette::Colours => plain.fg(colour),
            Palette::Plain => plain,
        };
        match tone {
            Tone::Plain => plain,
            Tone::Heading => plain.add_modifier(Modifier::BOLD),
            Tone::Dim => plain.add_modifier(Modifier::DIM),
            Tone::Ours => coloured(Color::Green),
            Tone::Coming => coloured(Color::Cyan),
            Tone::Others => coloured(Color::Yellow),
            Tone::Alarm => coloured(Color::Red).add_modifier(Modifier::BOLD),
        }
    }
}

#[cfg(test)]
mod tests {
    use ratatui::{Terminal, backend::TestBackend};

    use super::*;
    use crate::status::page::tests::busy;

    fn screen() -> Screen {
        let event = |number: u32| format!("11:20:{number}.000 dispatch  interactive step 1/1 -> gemma4-12b");
        Screen {
            address: "http://127.0.0.1:8080".to_owned(),
            status: busy(),
            events: (10..40).map(event).collect(),
            age: Duration::ZERO,
            trouble: None,
            scrolled: 0,
            palette: Palette::Plain,
        }
    }

    fn drawn(screen: &mut Screen, width: u16, height: u16) -> Terminal<TestBackend> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        terminal
    }

    #[test]
    fn a_terminal_of_the_usual_size_shows_devices_queues_and_events() {
        insta::assert_snapshot!(drawn(&mut screen(), 80, 24).backend());
    }

    #[test]
    fn a_narrow_terminal_shows_what_it_has_room_for() {
        insta::assert_snapshot!(drawn(&mut screen(), 40, 16).backend());
    }

    #[test]
    fn a_daemon_that_went_silent_leaves_its_last_picture() {
        let mut screen =
            Screen { age: Duration::from_secs(7), trouble: Some("connection refused".to_owned()), ..screen() };
        let terminal = drawn(&mut screen, 80, 10);
        let last: String = (0..80).filter_map(|x| Some(terminal.backend().buffer().cell((x, 9))?.symbol())).collect();
        assert!(last.contains("no news for 7 s: connection refused"), "{last}");
    }

    #[test]
    fn scrolling_ends_with_the_page_and_no_size_is_too_small() {
        let mut far = Screen { scrolled: 1_000, ..screen() };
        drawn(&mut far, 80, 12);
        assert!(far.scrolled < 20, "{}", far.scrolled);
        for (width, height) in [(1, 1), (2, 3), (9, 2), (3, 40), (300, 100)] {
            drawn(&mut screen(), width, height);
        }
    }

    #[test]
    fn without_colours_there_are_none() {
        let coloured = |palette| {
            let terminal = drawn(&mut Screen { palette, ..screen() }, 80, 24);
            terminal.backend().buffer().content.iter().any(|cell| cell.fg != Color::Reset)
        };
        assert!(coloured(Palette::Colours) && !coloured(Palette::Plain));
    }
}
