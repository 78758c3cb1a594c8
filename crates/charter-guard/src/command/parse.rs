//! Reads a command line. It reads less than a shell does; what it does not read is an error, and
//! the call is opaque then.

use thiserror::Error;

use super::redirect::Pending;
use super::syntax::{Assignment, Command, Joint, Kind, List, Piece, Pipeline, Word};

/// Upper limit of a command line.
pub(super) const MAX_LINE_BYTES: usize = 64 * 1024;
/// Upper limit of nesting.
const MAX_DEPTH: usize = 24;
/// Characters that are read for one call, with texts that are read again.
pub(super) const MAX_CHARACTERS: usize = 512 * 1024;

/// What on a command line is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{0}")]
pub(super) struct Unreadable(pub(super) &'static str);

/// Words that mean something at the begin of a command.
const RESERVED: &[&str] = &[
    "if",
    "then",
    "else",
    "elif",
    "fi",
    "for",
    "while",
    "until",
    "do",
    "done",
    "case",
    "esac",
    "in",
    "function",
    "select",
    "coproc",
    "repeat",
    "foreach",
    "end",
    "always",
    "{",
    "}",
    "[[",
    "]]",
    "!",
    "-",
    "nocorrect",
    "noglob",
];

/// Reads one text.
pub(super) struct Parser<'a> {
    text: Vec<char>,
    pub(super) at: usize,
    depth: usize,
    left: &'a mut usize,
    /// Here-documents whose text follows the end of the line.
    pub(super) pending: Vec<Pending>,
}

/// Reads a command line; `left` is how many characters may still be read.
pub(super) fn parse(text: &str, depth: usize, left: &mut usize) -> Result<List, Unreadable> {
    let mut parser = Parser::new(text, depth, left)?;
    let list = parser.list()?;
    match parser.peek() {
        None if parser.pending.is_empty() => Ok(list),
        None => Err(Unreadable("a here-document without its text")),
        Some(_) => Err(Unreadable("an unexpected word or parenthesis")),
    }
}

impl<'a> Parser<'a> {
    fn new(text: &str, depth: usize, left: &'a mut usize) -> Result<Self, Unreadable> {
        if text.len() > MAX_LINE_BYTES {
            return Err(Unreadable("a command line that is too long"));
        }
        if depth > MAX_DEPTH {
            return Err(Unreadable("too much nesting"));
        }
        if text.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
            return Err(Unreadable("a control character"));
        }
        let mut parser = Self { text: text.chars().collect(), at: 0, depth, left, pending: Vec::new() };
        parser.charge(parser.text.len())?;
        Ok(parser)
    }

    pub(super) fn charge(&mut self, characters: usize) -> Result<(), Unreadable> {
        *self.left = self.left.checked_sub(characters).ok_or(Unreadable("too much text"))?;
        Ok(())
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    pub(super) fn peek_at(&self, offset: usize) -> Option<char> {
        self.text.get(self.at.saturating_add(offset)).copied()
    }

    /// A character that was read already.
    pub(super) fn peek_back(&self, offset: usize) -> Option<char> {
        self.at.checked_sub(offset).and_then(|at| self.text.get(at)).copied()
    }

    pub(super) fn advance(&mut self) {
        self.at = self.at.saturating_add(1);
    }

    pub(super) fn back(&mut self) {
        self.at = self.at.saturating_sub(1);
    }

    pub(super) fn next(&mut self) -> Result<char, Unreadable> {
        let c = self.peek().ok_or(Unreadable("an unexpected end"))?;
        self.advance();
        Ok(c)
    }

    pub(super) fn eat(&mut self, text: &str) -> bool {
        let found = text.chars().enumerate().all(|(offset, c)| self.peek_at(offset) == Some(c));
        if found {
            self.at = self.at.saturating_add(text.chars().count());
        }
        found
    }

    pub(super) fn skip_continuations(&mut self) {
        while self.peek() == Some('\\') && self.peek_at(1) == Some('\n') {
            self.at = self.at.saturating_add(2);
        }
    }

    pub(super) fn skip_blanks(&mut self) {
        loop {
            self.skip_continuations();
            match self.peek() {
                Some(' ' | '\t') => self.advance(),
                Some('#') => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.advance();
                    }
                }
                _ => return,
            }
        }
    }

    /// Skips blanks, comments and new lines, and reads the here-documents that a new line starts.
    pub(super) fn skip_lines(&mut self) -> Result<(), Unreadable> {
        loop {
            self.skip_blanks();
            if self.peek() != Some('\n') {
                return Ok(());
            }
            self.advance();
            self.read_pending()?;
        }
    }

    fn read_pending(&mut self) -> Result<(), Unreadable> {
        for pending in std::mem::take(&mut self.pending) {
            let text = self.here_document(&pending.end, pending.quoted, pending.tabs)?;
            *pending.target.borrow_mut() = text;
        }
        Ok(())
    }

    /// Reads the list of `$(`, `<(` or `(`, with its closing parenthesis.
    pub(super) fn nested_list(&mut self) -> Result<List, Unreadable> {
        let outer = std::mem::take(&mut self.pending);
        let list = self.deeper(Self::list)?;
        if !self.pending.is_empty() {
            return Err(Unreadable("a here-document without its text"));
        }
        self.pending = outer;
        if self.eat(")") { Ok(list) } else { Err(Unreadable("a missing parenthesis")) }
    }

    /// Reads another text as a list of commands.
    pub(super) fn other_text(&mut self, text: &str) -> Result<List, Unreadable> {
        parse(text, self.depth.saturating_add(1), self.left)
    }

    /// Reads the text of a here-document.
    pub(super) fn here_text(&mut self, text: &str) -> Result<Word, Unreadable> {
        Parser::new(text, self.depth.saturating_add(1), self.left)?.here_pieces()
    }

    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Unreadable>) -> Result<T, Unreadable> {
        self.depth = self.depth.saturating_add(1);
        if self.depth > MAX_DEPTH {
            return Err(Unreadable("too much nesting"));
        }
        let result = read(self)?;
        self.depth = self.depth.saturating_sub(1);
        Ok(result)
    }

    /// The reserved word that comes next.
    pub(super) fn reserved(&self) -> Option<&'static str> {
        let mut word = String::new();
        while let Some(c) = self.peek_at(word.chars().count()) {
            if c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')' | '<' | '>') {
                break;
            }
            word.push(c);
            if word.len() > 10 {
                return None;
            }
        }
        RESERVED.iter().find(|reserved| **reserved == word).copied()
    }

    pub(super) fn expect(&mut self, word: &'static str) -> Result<(), Unreadable> {
        self.skip_lines()?;
        if self.reserved() == Some(word) && self.eat(word) { Ok(()) } else { Err(Unreadable("an incomplete command")) }
    }

    pub(super) fn list(&mut self) -> Result<List, Unreadable> {
        let mut pipelines: Vec<Pipeline> = Vec::new();
        let mut joint = Joint::Then;
        loop {
            self.skip_lines()?;
            let ends = matches!(self.reserved(), Some("then" | "else" | "elif" | "fi" | "do" | "done" | "esac" | "}"));
            if ends || matches!(self.peek(), None | Some(')' | ';')) {
                return if joint == Joint::Then { Ok(List(pipelines)) } else { Err(Unreadable("an incomplete list")) };
            }
            let mut pipeline = self.pipeline(joint)?;
            self.skip_blanks();
            joint = Joint::Then;
            let mut goes_on = true;
            if self.eat("&&") {
                joint = Joint::And;
            } else if self.eat("||") {
                joint = Joint::Or;
            } else if self.peek() == Some('&') {
                if matches!(self.peek_at(1), Some('!' | '|' | '>')) {
                    return Err(Unreadable("an unusual operator"));
                }
                self.advance();
                pipeline.background = true;
            } else if self.peek() == Some(';') && !matches!(self.peek_at(1), Some(';' | '&' | '|')) {
                self.advance();
            } else if self.peek() != Some('\n') {
                goes_on = false;
            }
            pipelines.push(pipeline);
            if !goes_on {
                return Ok(List(pipelines));
            }
        }
    }

    fn pipeline(&mut self, joint: Joint) -> Result<Pipeline, Unreadable> {
        let mut negated = false;
        while self.reserved() == Some("!") {
            self.advance();
            self.skip_blanks();
            negated = true;
        }
        let mut commands = vec![self.deeper(Self::command)?];
        loop {
            self.skip_blanks();
            if self.peek() != Some('|') || self.peek_at(1) == Some('|') {
                break;
            }
            self.advance();
            if self.peek() == Some('&') {
                self.advance();
            }
            self.skip_lines()?;
            commands.push(self.deeper(Self::command)?);
        }
        Ok(Pipeline { joint, commands, background: false, negated })
    }

    pub(super) fn command(&mut self) -> Result<Command, Unreadable> {
        self.skip_blanks();
        let kind = match self.reserved() {
            Some("{") => {
                self.advance();
                let list = self.list()?;
                self.expect("}")?;
                Kind::Group(list)
            }
            Some("if") => self.if_command()?,
            Some(word @ ("while" | "until")) => {
                self.eat(word);
                let condition = self.list()?;
                Kind::Loop(vec![condition, self.do_group()?])
            }
            Some("for") => self.for_command()?,
            Some("case") => self.case_command()?,
            Some("[[") => self.test_command()?,
            Some("function") => {
                self.eat("function");
                self.skip_blanks();
                let word = self.word()?;
                self.skip_blanks();
                if self.eat("(") {
                    self.skip_blanks();
                    if !self.eat(")") {
                        return Err(Unreadable("an unusual function"));
                    }
                }
                return self.function(&word);
            }
            Some(_) => return Err(Unreadable("an unusual command")),
            None if self.peek() == Some('(') => {
                if self.peek_at(1) == Some('(') {
                    return Err(Unreadable("an arithmetic command"));
                }
                self.advance();
                Kind::Subshell(self.nested_list()?)
            }
            None => return self.simple(),
        };
        let mut redirections = Vec::new();
        loop {
            self.skip_blanks();
            match self.redirection()? {
                Some(redirection) => redirections.push(redirection),
                None => return Ok(Command { kind, redirections }),
            }
        }
    }

    fn simple(&mut self) -> Result<Command, Unreadable> {
        let (mut assignments, mut words, mut redirections) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            self.skip_blanks();
            if let Some(redirection) = self.redirection()? {
                redirections.push(redirection);
                continue;
            }
            if self.at_end_of_word() {
                break;
            }
            if words.is_empty()
                && let Some(assignment) = self.assignment()?
            {
                assignments.push(assignment);
                continue;
            }
            let word = self.word_or_function()?;
            if self.peek() == Some('(') {
                let empty = words.is_empty() && assignments.is_empty() && redirections.is_empty();
                self.advance();
                self.skip_blanks();
                if !empty || !self.eat(")") {
                    return Err(Unreadable("a parenthesis in a word"));
                }
                return self.function(&word);
            }
            words.push(word);
        }
        if assignments.is_empty() && words.is_empty() && redirections.is_empty() {
            return Err(Unreadable("a missing command"));
        }
        Ok(Command { kind: Kind::Simple { assignments, words }, redirections })
    }

    /// Reads a word, or the name in front of `()`.
    fn word_or_function(&mut self) -> Result<Word, Unreadable> {
        let mut length = 0_usize;
        while self.peek_at(length).is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')) {
            length = length.saturating_add(1);
        }
        if length > 0 && self.peek_at(length) == Some('(') {
            let mut word = Word::new();
            for _ in 0..length {
                word.push(Piece::Char(self.next()?, false));
            }
            return Ok(word);
        }
        self.word()
    }

    fn assignment(&mut self) -> Result<Option<Assignment>, Unreadable> {
        let mut name = String::new();
        while let Some(c) = self.peek_at(name.len()).filter(|c| c.is_ascii_alphanumeric() || *c == '_') {
            name.push(c);
        }
        let appends = self.peek_at(name.len()) == Some('+') && self.peek_at(name.len().saturating_add(1)) == Some('=');
        let starts = name.chars().next().is_some_and(|c| !c.is_ascii_digit());
        if !starts || !appends && self.peek_at(name.len()) != Some('=') {
            return Ok(None);
        }
        self.at = self.at.saturating_add(name.len()).saturating_add(if appends { 2 } else { 1 });
        if self.peek() == Some('(') {
            return Err(Unreadable("an array"));
        }
        Ok(Some(Assignment { name, value: self.word()?, appends }))
    }
}
