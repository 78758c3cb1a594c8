//! Reads words: quotes, expansions, here-documents.

use std::rc::Rc;

use super::parse::{Parser, Unreadable};
use super::syntax::{Piece, Word};

impl Parser<'_> {
    /// Whether a word ends here.
    pub(super) fn at_end_of_word(&self) -> bool {
        match self.peek() {
            None | Some(' ' | '\t' | '\n' | ';' | '&' | '|' | ')') => true,
            Some('<' | '>') => self.peek_at(1) != Some('('),
            _ => false,
        }
    }

    /// Reads a word; it may be empty.
    pub(super) fn word(&mut self) -> Result<Word, Unreadable> {
        let mut word = Word::new();
        loop {
            self.skip_continuations();
            if self.at_end_of_word() {
                return Ok(word);
            }
            match self.next()? {
                '\\' => {
                    if let Some(c) = self.peek() {
                        self.advance();
                        word.push(Piece::Char(c, true));
                    } else {
                        return Err(Unreadable("a backslash at the end"));
                    }
                }
                '\'' => self.single_quoted(&mut word)?,
                '"' => self.double_quoted(&mut word)?,
                '`' => word.push(self.backquoted(false)?),
                '$' => match self.peek() {
                    Some('\'') => {
                        self.advance();
                        self.ansi_quoted(&mut word)?;
                    }
                    Some('"') => {
                        self.advance();
                        self.double_quoted(&mut word)?;
                    }
                    _ => word.push(self.dollar(false)?),
                },
                '<' | '>' => {
                    self.advance();
                    word.push(Piece::Process(Rc::new(self.nested_list()?)));
                }
                '(' => return Err(Unreadable("a parenthesis in a word")),
                c => word.push(Piece::Char(c, false)),
            }
        }
    }

    /// Marks that a word was quoted even if nothing is in it.
    fn mark_quoted(word: &mut Word) {
        word.push(Piece::Variable(String::new(), true));
    }

    fn single_quoted(&mut self, word: &mut Word) -> Result<(), Unreadable> {
        Self::mark_quoted(word);
        loop {
            match self.next()? {
                '\'' => return Ok(()),
                c => word.push(Piece::Char(c, true)),
            }
        }
    }

    fn double_quoted(&mut self, word: &mut Word) -> Result<(), Unreadable> {
        Self::mark_quoted(word);
        loop {
            match self.next()? {
                '"' => return Ok(()),
                c => self.in_quotes(c, word)?,
            }
        }
    }

    /// Reads what a character means between double quotes, or in a here-document.
    fn in_quotes(&mut self, c: char, word: &mut Word) -> Result<(), Unreadable> {
        match c {
            '\\' => match self.next()? {
                '\n' => {}
                c @ ('$' | '`' | '"' | '\\') => word.push(Piece::Char(c, true)),
                c => word.extend([Piece::Char('\\', true), Piece::Char(c, true)]),
            },
            '`' => word.push(self.backquoted(true)?),
            '$' => word.push(self.dollar(true)?),
            c => word.push(Piece::Char(c, true)),
        }
        Ok(())
    }

    /// Reads `$'...'`.
    fn ansi_quoted(&mut self, word: &mut Word) -> Result<(), Unreadable> {
        Self::mark_quoted(word);
        loop {
            let c = match self.next()? {
                '\'' => return Ok(()),
                '\\' => match self.next()? {
                    'n' => '\n',
                    't' => '\t',
                    c @ ('\\' | '\'' | '"' | '?') => c,
                    'x' => self.code_point(16, 2)?,
                    'u' => self.code_point(16, 4)?,
                    'U' => self.code_point(16, 8)?,
                    c @ '0'..='7' => {
                        self.back();
                        let _ = c;
                        self.code_point(8, 3)?
                    }
                    _ => return Err(Unreadable("an unusual escape in $'...'")),
                },
                c => c,
            };
            word.push(Piece::Char(c, true));
        }
    }

    fn code_point(&mut self, radix: u32, digits: usize) -> Result<char, Unreadable> {
        let mut value = 0_u32;
        let mut count = 0_usize;
        while let Some(digit) = self.peek().filter(|_| count < digits).and_then(|c| c.to_digit(radix)) {
            self.advance();
            count = count.saturating_add(1);
            value = value.saturating_mul(radix).saturating_add(digit);
        }
        // Above ASCII, an escape is a byte in one shell and a character in another.
        char::from_u32(value)
            .filter(|c| count > 0 && c.is_ascii() && (!c.is_control() || matches!(c, '\n' | '\t')))
            .ok_or(Unreadable("an unusual escape in $'...'"))
    }

    /// Reads what follows `$`.
    fn dollar(&mut self, quoted: bool) -> Result<Piece, Unreadable> {
        self.skip_continuations();
        match self.peek() {
            Some('(') if self.peek_at(1) == Some('(') => self.arithmetic(quoted),
            Some('(') => {
                self.advance();
                Ok(Piece::Command(Rc::new(self.nested_list()?), quoted))
            }
            Some('{') => self.parameter(quoted),
            Some('[') => Err(Unreadable("old arithmetic `$[`")),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let mut name = String::new();
                while let Some(c) = self.peek().filter(|c| c.is_ascii_alphanumeric() || *c == '_') {
                    name.push(c);
                    self.advance();
                    self.skip_continuations();
                }
                // Other shells take an index here.
                if self.peek() == Some('[') {
                    return Err(Unreadable("an index of a variable"));
                }
                Ok(Piece::Variable(name, quoted))
            }
            Some('0'..='9' | '@' | '*' | '#' | '?' | '$' | '!' | '-') => {
                self.advance();
                Ok(Piece::Unknown(quoted))
            }
            Some(c)
                if !quoted && !c.is_whitespace() && !matches!(c, '"' | '\'' | ';' | '&' | '|' | '/' | ',' | ':') =>
            {
                Err(Unreadable("an unusual expansion"))
            }
            _ => Ok(Piece::Char('$', quoted)),
        }
    }

    /// Reads `${...}`. Only what cannot run anything is read.
    fn parameter(&mut self, quoted: bool) -> Result<Piece, Unreadable> {
        self.advance();
        let mut text = String::new();
        loop {
            match self.next()? {
                '}' => break,
                c if c.is_ascii_alphanumeric() || "_:#%/.,*?+^- ~".contains(c) => text.push(c),
                _ => return Err(Unreadable("an unusual expansion `${...}`")),
            }
        }
        if !is_harmless_parameter(&text) {
            return Err(Unreadable("an unusual expansion `${...}`"));
        }
        let name = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        match text.chars().next() {
            Some(c) if name && (c.is_ascii_alphabetic() || c == '_') => Ok(Piece::Variable(text, quoted)),
            Some(_) => {
                let name = text.trim_start_matches('#');
                let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
                Ok(Piece::Operation(name.get(..end).unwrap_or_default().to_owned(), quoted))
            }
            None => Err(Unreadable("an empty expansion")),
        }
    }

    /// Reads `$((...))`. Only numbers, names and operators that change nothing are read.
    fn arithmetic(&mut self, quoted: bool) -> Result<Piece, Unreadable> {
        self.advance();
        self.advance();
        let mut depth = 0_usize;
        loop {
            match self.next()? {
                '(' => depth = depth.saturating_add(1),
                ')' if depth == 0 => {
                    return match self.next()? {
                        ')' => Ok(Piece::Unknown(quoted)),
                        _ => Err(Unreadable("unusual arithmetic")),
                    };
                }
                ')' => depth = depth.saturating_sub(1),
                // The value of a name is evaluated again, so a name could run a command.
                c if c.is_ascii_digit() || " \t+-*/%<>".contains(c) => {}
                _ => return Err(Unreadable("unusual arithmetic")),
            }
        }
    }

    /// Reads a command between backquotes.
    fn backquoted(&mut self, quoted: bool) -> Result<Piece, Unreadable> {
        let mut text = String::new();
        loop {
            match self.next()? {
                '`' => break,
                '\\' => match self.next()? {
                    c @ ('`' | '$' | '\\') => text.push(c),
                    // Shells do not agree on this.
                    '"' if quoted => return Err(Unreadable("quotes in backquotes")),
                    c => text.extend(['\\', c]),
                },
                '"' if quoted => return Err(Unreadable("quotes in backquotes")),
                c => text.push(c),
            }
        }
        Ok(Piece::Command(Rc::new(self.other_text(&text)?), quoted))
    }

    /// Reads the text of a here-document whose end is a line `end`.
    pub(super) fn here_document(&mut self, end: &str, quoted: bool, tabs: bool) -> Result<Word, Unreadable> {
        let mut text = String::new();
        loop {
            if self.peek().is_none() {
                return Err(Unreadable("a here-document without its end"));
            }
            let mut line = String::new();
            while let Some(c) = self.peek() {
                self.advance();
                if c == '\n' {
                    break;
                }
                line.push(c);
            }
            if tabs {
                line = line.trim_start_matches('\t').to_owned();
            }
            if line == end {
                break;
            }
            text.push_str(&line);
            text.push('\n');
            self.charge(line.len())?;
        }
        if quoted {
            return Ok(text.chars().map(|c| Piece::Char(c, true)).collect());
        }
        self.here_text(&text)
    }

    /// Reads the expansions of a here-document.
    pub(super) fn here_pieces(&mut self) -> Result<Word, Unreadable> {
        let mut word = Word::new();
        while self.peek().is_some() {
            match self.next()? {
                // Not special here, unlike between quotes.
                '\\' if self.peek() == Some('"') => word.push(Piece::Char('\\', true)),
                '"' => word.push(Piece::Char('"', true)),
                '\\' if self.peek().is_none() => word.push(Piece::Char('\\', true)),
                c => self.in_quotes(c, &mut word)?,
            }
        }
        Ok(word)
    }
}

/// Whether the text of `${...}` cannot evaluate anything: in `${x:y}`, `y` is arithmetic, which may
/// run a command.
fn is_harmless_parameter(text: &str) -> bool {
    let name = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if let Some(length) = text.strip_prefix('#') {
        return name(length);
    }
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let (parameter, operation) = text.split_at(end);
    if !name(parameter) {
        return false;
    }
    match operation.strip_prefix(':') {
        Some(rest) => {
            rest.starts_with(['-', '+', '?']) || rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b':')
        }
        None => true,
    }
}
