//! A text table with columns as wide as their content.

use std::io::{self, Write};

use crate::io::Paint;

/// Maximum width of a cell; longer cells are cut.
const MAX_WIDTH: usize = 80;

/// Rows with a heading.
pub(crate) struct Table {
    heading: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(heading: &[&str]) -> Table {
        Table { heading: heading.iter().map(|h| (*h).to_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a row; returns its size in bytes.
    pub(crate) fn row(&mut self, cells: Vec<String>) -> usize {
        let cut = |cell: String| {
            // Line breaks would break the layout.
            let cell: String = cell.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            match cell.char_indices().nth(MAX_WIDTH) {
                Some((end, _)) => format!("{}…", cell.get(..end).unwrap_or_default()),
                None => cell,
            }
        };
        let row: Vec<String> = cells.into_iter().map(cut).collect();
        let size = row.iter().map(|cell| cell.len().saturating_add(size_of::<String>())).sum();
        self.rows.push(row);
        size
    }

    pub(crate) fn write(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        let width = |column: usize| {
            let all = self.rows.iter().chain([&self.heading]);
            all.filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.heading.len()).map(width).collect();
        let line = |row: &[String]| {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(cell);
                let blanks = width.saturating_sub(cell.chars().count()) + 2;
                line.push_str(&" ".repeat(blanks));
            }
            line.trim_end().to_owned()
        };
        writeln!(out, "{}", paint.faint(&line(&self.heading)))?;
        for row in &self.rows {
            writeln!(out, "{}", line(row))?;
        }
        Ok(())
    }
}
