//! The streams of a command. The commands do not look at the terminal: the caller chooses whether
//! to use colors.

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
    /// Whether results are colored.
    pub color_out: bool,
    /// Whether diagnostics are colored.
    pub color_err: bool,
    /// Whether the session is interactive: progress is drawn on `err`, and prompts read `input`.
    pub terminal: bool,
    /// Columns and rows of the terminal, if known: longer output is paged.
    pub screen: Option<(u16, u16)>,
}

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Success.
    Yes,
    /// The command worked, and its answer is no: refused, findings, not verified, not conforming.
    No,
    /// The command could not run: usage, file, input or output.
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

/// Why a command could not work. Shown on standard error; the exit code is 2.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A message: what is wrong, where and why.
    #[error("{message}")]
    Message {
        /// What is wrong.
        message: String,
        /// What to do about it.
        help: Option<String>,
    },
    /// Errors in a charter or another source text, shown with the source lines.
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

    /// A message with help.
    pub fn with_help(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::Message { message: message.into(), help: Some(help.into()) }
    }

    /// Whether the reader of the output has closed it.
    #[must_use]
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Failure::Io(e) if e.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Writes the message.
    ///
    /// # Errors
    /// If the stream fails.
    pub fn show(&self, err: &mut dyn Write, color: bool) -> io::Result<()> {
        let paint = Paint(color);
        match self {
            Failure::Source(diagnostics) => write!(err, "{}", diagnostics.render(color)),
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

/// Colors text, or not.
#[derive(Debug, Clone, Copy)]
pub struct Paint(pub bool);

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        if self.0 { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
    /// Errors and refusals.
    #[must_use]
    pub fn error(self, text: &str) -> String {
        self.with("1;31", text)
    }
    /// Warnings.
    #[must_use]
    pub fn warning(self, text: &str) -> String {
        self.with("1;33", text)
    }
    /// Success.
    #[must_use]
    pub fn good(self, text: &str) -> String {
        self.with("1;32", text)
    }
    /// Help and hints.
    #[must_use]
    pub fn help(self, text: &str) -> String {
        self.with("1;36", text)
    }
    /// Emphasis.
    #[must_use]
    pub fn strong(self, text: &str) -> String {
        self.with("1", text)
    }
    /// Secondary text.
    #[must_use]
    pub fn faint(self, text: &str) -> String {
        self.with("2", text)
    }
}
