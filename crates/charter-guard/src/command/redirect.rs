//! Reads redirections.

use std::cell::RefCell;
use std::rc::Rc;

use super::parse::{Parser, Unreadable};
use super::syntax::{Operator, Piece, Redirection, Word};

/// A here-document whose text follows the end of the line.
pub(super) struct Pending {
    pub(super) end: String,
    pub(super) quoted: bool,
    pub(super) tabs: bool,
    pub(super) target: Rc<RefCell<Word>>,
}

impl Parser<'_> {
    /// Reads a redirection, if there is one here.
    pub(super) fn redirection(&mut self) -> Result<Option<Redirection>, Unreadable> {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.advance();
        }
        if self.at == start && self.peek() == Some('&') && self.peek_at(1) == Some('>') {
            self.advance();
        }
        if !matches!(self.peek(), Some('<' | '>')) || self.peek_at(1) == Some('(') {
            self.at = start;
            return Ok(None);
        }
        let digits = self.at.saturating_sub(start);
        let stream: String = (0..digits).filter_map(|back| self.peek_back(digits.saturating_sub(back))).collect();
        let stream = if stream.starts_with('&') { String::new() } else { stream };
        if self.eat("<<<") {
            return Ok(Some(self.target(Operator::Text, stream)?));
        }
        if self.eat("<<") {
            return self.start_here_document(stream).map(Some);
        }
        let operator = if self.eat("<>") {
            Operator::ReadWrite
        } else if self.eat("<&") || self.eat(">&") {
            Operator::Duplicate
        } else if self.eat("<") {
            Operator::Read
        } else {
            let _ = self.eat(">>") || self.eat(">|") || self.eat(">");
            Operator::Write
        };
        if matches!(self.peek(), Some('!' | '|' | '&' | '<' | '>')) && self.peek_at(1) != Some('(') {
            return Err(Unreadable("an unusual redirection"));
        }
        Ok(Some(self.target(operator, stream)?))
    }

    fn target(&mut self, operator: Operator, stream: String) -> Result<Redirection, Unreadable> {
        self.skip_blanks();
        let word = self.word()?;
        if word.is_empty() {
            return Err(Unreadable("a redirection to nothing"));
        }
        Ok(Redirection { operator, stream, target: Rc::new(RefCell::new(word)) })
    }

    fn start_here_document(&mut self, stream: String) -> Result<Redirection, Unreadable> {
        let tabs = self.eat("-");
        self.skip_blanks();
        let (mut end, mut quoted) = (String::new(), false);
        for piece in self.word()? {
            match piece {
                Piece::Char(c, is_quoted) => {
                    quoted |= is_quoted;
                    end.push(c);
                }
                Piece::Variable(name, true) if name.is_empty() => quoted = true,
                _ => return Err(Unreadable("an unusual here-document")),
            }
        }
        if end.is_empty() || end.contains(['\n', '$', '`']) {
            return Err(Unreadable("an unusual here-document"));
        }
        let target = Rc::new(RefCell::new(Word::new()));
        self.pending.push(Pending { end, quoted, tabs, target: Rc::clone(&target) });
        Ok(Redirection { operator: Operator::Text, stream, target })
    }
}
