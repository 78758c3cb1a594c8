//! Long texts on a terminal, a screen at a time.

use crate::io::{Failure, Io};

/// Writes sections of lines to the terminal; where they do not fit on the screen it waits after each screenful.
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
            let needs = seen(line).div_ceil(columns).max(1);
            if needs > left && left < rows - 2 {
                let rest = section.len() - at;
                match question(rest, number < last, io)? {
                    Answer::More => {}
                    Answer::NextFile => {
                        left = rows - 2;
                        break;
                    }
                    Answer::Enough => return Ok(()),
                }
                left = rows - 2;
            }
            writeln!(io.err, "{line}")?;
            left = left.saturating_sub(needs);
        }
    }
    Ok(())
}

enum Answer {
    More,
    NextFile,
    Enough,
}

fn question(rest: usize, others: bool, io: &mut Io<'_>) -> Result<Answer, Failure> {
    let next = if others { ", n: next file" } else { "" };
    write!(io.err, "-- {rest} more lines of this file. Enter: go on{next}, q: enough -- ")?;
    io.err.flush()?;
    let mut line = String::new();
    let read = io.input.read_line(&mut line)?;
    Ok(match line.trim() {
        _ if read == 0 => Answer::Enough,
        "n" => Answer::NextFile,
        "q" => Answer::Enough,
        _ => Answer::More,
    })
}

/// How many characters of a line are seen: all but the escape codes of colours.
fn seen(line: &str) -> usize {
    let (mut seen, mut inside) = (0, false);
    for c in line.chars() {
        match (inside, c) {
            (false, '\u{1b}') => inside = true,
            (true, 'm') => inside = false,
            (true, _) => {}
            (false, '\t') => seen += 8,
            (false, _) => seen += 1,
        }
    }
    seen
}
