//! Where results, messages and input go and come from. The commands know no terminal: colour is decided outside.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

/// The streams of a command.
pub struct Io<'a> {
    /// Results.
    pub out: &'a mut dyn Write,
    /// Progress and diagnostics.
    pub err: &'a mut dyn Write,
    /// Standard input, for `-`.
    pub input: Box<dyn BufRead + 'a>,
    /// Whether results may have colours.
    pub colour_out: bool,
    /// Whether diagnostics may have colours.
    pub colour_err: bool,
    /// Whether a person sits at it: progress may be drawn on `err`, and questions are answered on `input`.
    pub terminal: bool,
    /// Columns and rows of the terminal, where known: what is longer is shown in pages.
    pub screen: Option<(u16, u16)>,
}

/// What a command ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Fine.
    Yes,
    /// It worked, and the answer is no: refused, findings, not verified, not conforming.
    No,
    /// It could not be done: usage, file, input or output.
    CouldNot,
}

impl Exit {
    /// 0, 1 or 2.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Exit::Yes => 0,
            Exit::No => 1,
            Exit::CouldNot => 2,
        }
    }

    /// The worse of two.
    #[must_use]
    pub fn and(self, other: Exit) -> Exit {
        if self.code() >= other.code() { self } else { other }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// Why a command could not do its work. Shown on standard error; the exit code is 2.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A plain message: what, where, why, and what would be right.
    #[error("{message}")]
    Message {
        /// What is wrong.
        message: String,
        /// What would be right.
        help: Option<String>,
    },
    /// Something is wrong with a charter or another source text, shown with the lines it speaks of.
    #[error("{}", .0.render(false))]
    Source(Box<charter_format::Diagnostics>),
    /// A stream failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Failure {
    /// A message without help.
    pub fn new(message: impl Into<String>) -> Failure {
        Failure::Message { message: message.into(), help: None }
    }

    /// A message and what would be right.
    pub fn with_help(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::Message { message: message.into(), help: Some(help.into()) }
    }

    /// The reader of our output has gone away.
    #[must_use]
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Failure::Io(e) if e.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Writes it for people.
    ///
    /// # Errors
    /// Those of the stream.
    pub fn show(&self, err: &mut dyn Write, colour: bool) -> io::Result<()> {
        let paint = Paint(colour);
        match self {
            Failure::Source(diagnostics) => write!(err, "{}", diagnostics.render(colour)),
            Failure::Message { message, help } => {
                writeln!(err, "{} {message}", paint.error("error:"))?;
                match help {
                    Some(help) => writeln!(err, "{} {help}", paint.help("help:")),
                    None => Ok(()),
                }
            }
            Failure::Io(e) => writeln!(err, "{} {e}", paint.error("error:")),
        }
    }
}

/// Colours, or none.
#[derive(Debug, Clone, Copy)]
pub struct Paint(pub bool);

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        if self.0 { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
    /// What is wrong.
    #[must_use]
    pub fn error(self, text: &str) -> String {
        self.with("1;31", text)
    }
    /// What may be wrong.
    #[must_use]
    pub fn warning(self, text: &str) -> String {
        self.with("1;33", text)
    }
    /// What is right.
    #[must_use]
    pub fn good(self, text: &str) -> String {
        self.with("1;32", text)
    }
    /// What would be right.
    #[must_use]
    pub fn help(self, text: &str) -> String {
        self.with("1;36", text)
    }
    /// What matters.
    #[must_use]
    pub fn strong(self, text: &str) -> String {
        self.with("1", text)
    }
    /// What matters less.
    #[must_use]
    pub fn faint(self, text: &str) -> String {
        self.with("2", text)
    }
}
