//! The streams of a command. Commands do not inspect the terminal: the caller decides whether to
//! use colors.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};

/// The streams of a command.
pub struct Io<'a> {
    /// Receives results.
    pub out: &'a mut dyn Write,
    /// Receives progress and diagnostics.
    pub err: &'a mut dyn Write,
    /// Standard input, for `-`.
    pub input: Box<dyn BufRead + 'a>,
    /// Whether results are colored.
    pub color_out: bool,
    /// Whether diagnostics are colored.
    pub color_err: bool,
    /// Whether the session is interactive: progress is drawn on `err`, and prompts read `input`.
    pub terminal: bool,
    /// Waits until there is input to read, at most for this time; returns whether there is some.
    pub ready: fn(Duration) -> bool,
    /// Columns and rows of the terminal, if known; output that does not fit is paged.
    pub screen: Option<(u16, u16)>,
}

impl Io<'_> {
    /// Asks a question on the terminal; anything but `y` and `yes` means no.
    ///
    /// # Errors
    /// A stream failed.
    pub(crate) fn confirm(&mut self, question: &str) -> io::Result<bool> {
        write!(self.err, "{question} [y/N] ")?;
        self.err.flush()?;
        let mut line = String::new();
        self.input.read_line(&mut line)?;
        Ok(matches!(line.trim(), "y" | "Y" | "yes"))
    }
}

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Success.
    Yes,
    /// The command worked, and the answer is negative: refused, findings, not verified, not
    /// conforming.
    No,
    /// The command could not run: wrong usage, or a file or stream failed.
    CouldNot,
}

impl Exit {
    /// The exit code: 0, 1 or 2.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Exit::Yes => 0,
            Exit::No => 1,
            Exit::CouldNot => 2,
        }
    }

    /// Returns the worse of two exits.
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

/// Why a command could not run, or was refused. Shown on standard error; the exit code is 2, and 1
/// for a refusal.
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
    /// The host or the journal refuses what was requested.
    #[error("{message}")]
    Refused {
        /// The code of the refusal.
        code: charter_kernel::Code,
        /// What is refused, and why.
        message: String,
    },
    /// Errors in a charter or another source text, shown with the source lines.
    #[error("{}", .0.render(false))]
    Source(Box<charter_format::Diagnostics>),
    /// Another process has the journal file open, and does not share it.
    #[error("{0}")]
    InUse(Box<crate::journal::InUse>),
    /// The connection to the process that holds the journal file was lost.
    #[error(
        "the connection to process {0}, which holds the journal file, was lost; what was requested may have been done"
    )]
    Lost(u32),
    /// A stream failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Failure {
    /// Creates a message without help.
    pub fn new(message: impl Into<String>) -> Failure {
        Failure::Message { message: message.into(), help: None }
    }

    /// Creates a message with help.
    pub fn with_help(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::Message { message: message.into(), help: Some(help.into()) }
    }

    /// How a command ends that fails with it.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Failure::Refused { .. } => Exit::No,
            _ => Exit::CouldNot,
        }
    }

    /// Whether the reader of the output has closed it.
    #[must_use]
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Failure::Io(e) if e.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The failure as JSON, for `--json`: `{"error": {"message", "help", "code", "diagnostics"}}`.
    /// Absent members are left out. Errors in a source text are listed under `diagnostics`, each
    /// with its place; the first one gives `message` and `code`.
    #[must_use]
    pub fn json(&self) -> Json {
        let mut error = Map::new();
        match self {
            Failure::Source(diagnostics) => {
                let list = diagnostics.list.iter().map(|d| {
                    json!({
                        "severity": d.severity.as_str(), "code": d.code, "message": d.message, "help": d.help, "paste": d.paste,
                        "file": d.file.as_ref().map_or(&diagnostics.name, |file| &file.name), "path": d.path, "line": d.line, "column": d.column,
                    })
                });
                let list: Vec<Json> = list.collect();
                if let Some(first) = diagnostics.list.first() {
                    error.insert("message".into(), first.message.as_str().into());
                    error.insert("code".into(), first.code.into());
                }
                error.insert("diagnostics".into(), list.into());
                error.insert("omitted".into(), diagnostics.omitted.into());
            }
            Failure::Message { message, help } => {
                error.insert("message".into(), message.as_str().into());
                if let Some(help) = help {
                    error.insert("help".into(), help.as_str().into());
                }
            }
            Failure::Refused { code, message } => {
                error.insert("message".into(), message.as_str().into());
                error.insert("code".into(), code.word().into());
            }
            Failure::InUse(in_use) => {
                error.insert("message".into(), in_use.to_string().into());
                error.insert("help".into(), crate::journal::InUse::HELP.into());
            }
            Failure::Lost(_) | Failure::Io(_) => {
                error.insert("message".into(), self.to_string().into());
            }
        }
        json!({"error": error})
    }

    /// Writes the message.
    ///
    /// # Errors
    /// The stream fails.
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
            Failure::Refused { code, message } => {
                writeln!(err, "{} {message}", paint.error(&format!("refused ({}):", code.word())))
            }
            Failure::InUse(in_use) => {
                writeln!(err, "{} {in_use}", paint.error("error:"))?;
                writeln!(err, "{} {}", paint.help("help:"), crate::journal::InUse::HELP)
            }
            Failure::Lost(_) => writeln!(err, "{} {self}", paint.error("error:")),
            Failure::Io(e) => writeln!(err, "{} {e}", paint.error("error:")),
        }
    }
}

/// Colors text if enabled.
#[derive(Debug, Clone, Copy)]
pub struct Paint(pub bool);

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        if self.0 { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
    /// Colors errors and refusals.
    #[must_use]
    pub fn error(self, text: &str) -> String {
        self.with("1;31", text)
    }
    /// Colors warnings.
    #[must_use]
    pub fn warning(self, text: &str) -> String {
        self.with("1;33", text)
    }
    /// Colors success.
    #[must_use]
    pub fn good(self, text: &str) -> String {
        self.with("1;32", text)
    }
    /// Colors help and hints.
    #[must_use]
    pub fn help(self, text: &str) -> String {
        self.with("1;36", text)
    }
    /// Emphasizes text.
    #[must_use]
    pub fn strong(self, text: &str) -> String {
        self.with("1", text)
    }
    /// Dims secondary text.
    #[must_use]
    pub fn faint(self, text: &str) -> String {
        self.with("2", text)
    }
}
