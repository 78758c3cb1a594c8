//! The parts of a command line, as they are written.

use std::cell::RefCell;
use std::rc::Rc;

/// A part of a word.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    /// A character, and whether it is quoted.
    Char(char, bool),
    /// `$NAME`.
    Variable(String, bool),
    /// `${NAME...}` with an operation, whose result is not known.
    Operation(String, bool),
    /// An expansion whose value is not known.
    Unknown(bool),
    /// `$(...)`.
    Command(Rc<List>, bool),
    /// `<(...)` or `>(...)`.
    Process(Rc<List>),
}

/// A word before its expansion.
pub(super) type Word = Vec<Piece>;

/// How a stream is redirected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    /// `<`
    Read,
    /// `>`, `>>`, `>|`, `&>`
    Write,
    /// `<>`
    ReadWrite,
    /// `>&`, `<&`
    Duplicate,
    /// `<<`, `<<<`: text of the command line itself.
    Text,
}

/// A redirection. The text of a here-document follows later on the command line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Redirection {
    /// The number of the stream, if it is given.
    pub(super) stream: String,
    pub(super) operator: Operator,
    pub(super) target: Rc<RefCell<Word>>,
}

impl Redirection {
    /// Whether it gives the standard input.
    pub(super) fn feeds(&self) -> bool {
        let reads = matches!(self.operator, Operator::Read | Operator::ReadWrite | Operator::Text);
        reads && matches!(self.stream.as_str(), "" | "0")
    }
}

/// An assignment in front of a command.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Assignment {
    pub(super) name: String,
    pub(super) value: Word,
    pub(super) appends: bool,
}

/// A command.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Command {
    pub(super) kind: Kind,
    pub(super) redirections: Vec<Redirection>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Simple {
        assignments: Vec<Assignment>,
        words: Vec<Word>,
    },
    /// `( ... )`
    Subshell(List),
    /// `{ ...; }`
    Group(List),
    /// Lists of which any may run, each under the state that those before it leave: `if`, `case`.
    Branches(Vec<Word>, Vec<List>),
    /// `while` and `until`.
    Loop(Vec<List>),
    /// `for NAME in WORDS`.
    For(String, Option<Vec<Word>>, List),
    /// `NAME() ...`
    Function(String, Rc<Command>),
    /// `[[ ... ]]`: only its expansions do something.
    Test(Vec<Word>),
}

/// What stands before a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joint {
    /// The begin of a list, or `;`, or a new line.
    Then,
    /// `&&`
    And,
    /// `||`
    Or,
}

/// Commands that are joined by `|`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pipeline {
    pub(super) joint: Joint,
    pub(super) commands: Vec<Command>,
    /// It ends with `&`.
    pub(super) background: bool,
    pub(super) negated: bool,
}

/// A list of pipelines.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct List(pub(super) Vec<Pipeline>);
