//! A pager: shows long text on a terminal one screen at a time.

use crate::io::{Failure, Io};

/// Writes sections of lines to the terminal, and pauses after each screenful.
pub(crate) fn write(sections: &[Vec<String>], io: &mut Io<'_>) -> Result<(), Failure> {
    let Some((columns, rows)) = io.screen else {
        for line in sections.iter().flatten() {
            writeln!(io.err, "{line}")?;
        }
        return Ok(());
    };
    let (columns, rows) = (usize::from(columns.max(20)), usize::from(rows.max(8)));
    let mut left = rows - 2;
    let last = sections.len().saturating_sub(1);
    for (number, section) in sections.iter().enumerate() {
        for (at, line) in section.iter().enumerate() {
            let needs = width(line).div_ceil(columns).max(1);
            if needs > left && left < rows - 2 {
                let rest = section.len() - at;
                match prompt(rest, number < last, io)? {
                    PagerCommand::Continue => {}
                    PagerCommand::NextFile => {
                        left = rows - 2;
                        break;
                    }
                    PagerCommand::Skip => return Ok(()),
                }
                left = rows - 2;
            }
            writeln!(io.err, "{line}")?;
            left = left.saturating_sub(needs);
        }
    }
    Ok(())
}

enum PagerCommand {
    Continue,
    NextFile,
    Skip,
}

fn prompt(rest: usize, others: bool, io: &mut Io<'_>) -> Result<PagerCommand, Failure> {
    let next = if others { ", n: next file" } else { "" };
    write!(io.err, "-- {rest} more lines of this file. Enter: continue{next}, q: skip the rest -- ")?;
    io.err.flush()?;
    let mut line = String::new();
    let read = io.input.read_line(&mut line)?;
    Ok(match line.trim() {
        _ if read == 0 => PagerCommand::Skip,
        "n" => PagerCommand::NextFile,
        "q" => PagerCommand::Skip,
        _ => PagerCommand::Continue,
    })
}

/// Returns the visible width of a line: the number of its characters without color escape codes.
fn width(line: &str) -> usize {
    let (mut width, mut inside) = (0, false);
    for c in line.chars() {
        match (inside, c) {
            (false, '\u{1b}') => inside = true,
            (true, 'm') => inside = false,
            (true, _) => {}
            (false, '\t') => width += 8,
            (false, _) => width += 1,
        }
    }
    width
}
