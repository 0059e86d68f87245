use std::io;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row, Table};
use tokio::sync::mpsc;

use super::frame::{Frame, HEAD, Link, Reported};
use crate::escape::escaped;

/// The whole terminal, given back when it is closed or dropped.
#[derive(Debug)]
pub(super) struct Screen {
    terminal: DefaultTerminal,
    keys: mpsc::Receiver<char>,
    is_open: bool,
}

/// How often the reader of keys looks whether it is still needed.
const LOOK: Duration = Duration::from_millis(100);

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        let terminal = ratatui::try_init()?;
        let (sender, keys) = mpsc::channel(16);
        std::thread::spawn(move || read(&sender));
        Ok(Self {
            terminal,
            keys,
            is_open: true,
        })
    }

    /// The next key; Ctrl-C comes as a key too, because the terminal is in raw mode.
    pub(super) async fn key(&mut self) -> char {
        match self.keys.recv().await {
            Some(key) => key,
            None => std::future::pending().await,
        }
    }

    pub(super) fn draw(&mut self, frame: &Frame) -> io::Result<()> {
        self.terminal.draw(|area| {
            let below = u16::try_from(frame.reasons.len())
                .unwrap_or(u16::MAX)
                .min(8);
            let [title, links, reasons, foot] = Layout::vertical([
                Constraint::Length(2),
                Constraint::Min(3),
                Constraint::Length(below.saturating_add(1)),
                Constraint::Length(1),
            ])
            .areas(area.area());
            let links_are = match frame.links.len() {
                1 => "1 link".to_owned(),
                count => format!("{count} links"),
            };
            let heading = format!("nacp-cli top  {}  {links_are}", escaped(&frame.own));
            area.render_widget(Paragraph::new(heading).bold(), title);
            area.render_widget(table(&frame.links), links);
            area.render_widget(Paragraph::new(reported(&frame.reasons)), reasons);
            area.render_widget(Paragraph::new("q quit").dim(), foot);
        })?;
        Ok(())
    }

    pub(super) fn close(&mut self) {
        if std::mem::take(&mut self.is_open) {
            ratatui::restore();
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.close();
    }
}

fn table(links: &[Link]) -> Table<'_> {
    let rows = links.iter().map(|link| {
        let color = match link.state {
            "online" => Color::Green,
            "offline" => Color::Yellow,
            _ => Color::Red,
        };
        let mut cells = link.cells().map(Cell::from);
        if let Some(state) = cells.get_mut(1) {
            *state = Cell::from(link.state).style(Style::new().fg(color));
        }
        Row::new(cells)
    });
    let widths =
        HEAD.map(|(_, width)| Constraint::Length(u16::try_from(width).unwrap_or(u16::MAX)));
    let head = Row::new(HEAD.map(|(name, _)| Cell::from(name))).bold();
    Table::new(rows, widths).header(head)
}

fn reported(reasons: &[Reported]) -> Vec<Line<'_>> {
    let mut lines = vec![Line::from("REPORTED").bold()];
    lines.extend(
        reasons
            .iter()
            .map(|Reported { reason, count }| Line::from(format!("{count:>8}  {reason}"))),
    );
    lines
}

fn read(keys: &mpsc::Sender<char>) {
    while !keys.is_closed() {
        if !event::poll(LOOK).unwrap_or(false) {
            continue;
        }
        let Ok(event) = event::read() else { return };
        let Event::Key(key) = event else { continue };
        if key.kind == KeyEventKind::Release {
            continue;
        }
        let sent = if let KeyCode::Char(letter) = key.code {
            let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
            keys.blocking_send(if is_control && letter == 'c' {
                '\u{3}'
            } else {
                letter
            })
        } else if key.code == KeyCode::Esc {
            keys.blocking_send('\u{1b}')
        } else {
            Ok(())
        };
        if sent.is_err() {
            return;
        }
    }
}
