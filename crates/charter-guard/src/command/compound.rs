//! Reads the commands that contain commands.

use std::rc::Rc;

use super::parse::{Parser, Unreadable};
use super::syntax::{Command, Kind, List, Piece, Word};

impl Parser<'_> {
    pub(super) fn function(&mut self, name: &Word) -> Result<Command, Unreadable> {
        let name: Option<String> =
            name.iter().map(|piece| if let Piece::Char(c, false) = piece { Some(*c) } else { None }).collect();
        let name = name.filter(|name| !name.is_empty()).ok_or(Unreadable("an unusual function"))?;
        self.skip_lines()?;
        let body = self.deeper(Self::command)?;
        if matches!(body.kind, Kind::Simple { .. } | Kind::Function(..)) {
            return Err(Unreadable("an unusual function"));
        }
        Ok(Command { kind: Kind::Function(name, Rc::new(body)), redirections: Vec::new() })
    }

    pub(super) fn if_command(&mut self) -> Result<Kind, Unreadable> {
        self.eat("if");
        let mut lists = vec![self.list()?];
        self.expect("then")?;
        lists.push(self.list()?);
        loop {
            self.skip_lines()?;
            match self.reserved() {
                Some("elif") => {
                    self.eat("elif");
                    lists.push(self.list()?);
                    self.expect("then")?;
                    lists.push(self.list()?);
                }
                Some("else") => {
                    self.eat("else");
                    lists.push(self.list()?);
                    self.expect("fi")?;
                    return Ok(Kind::Branches(Vec::new(), lists));
                }
                _ => {
                    self.expect("fi")?;
                    return Ok(Kind::Branches(Vec::new(), lists));
                }
            }
        }
    }

    pub(super) fn do_group(&mut self) -> Result<List, Unreadable> {
        self.expect("do")?;
        let list = self.list()?;
        self.expect("done")?;
        Ok(list)
    }

    pub(super) fn for_command(&mut self) -> Result<Kind, Unreadable> {
        self.eat("for");
        self.skip_blanks();
        let mut name = String::new();
        while let Some(c) = self.peek().filter(|c| c.is_ascii_alphanumeric() || *c == '_') {
            name.push(c);
            self.advance();
        }
        if name.is_empty() {
            return Err(Unreadable("an unusual loop"));
        }
        self.skip_lines()?;
        let mut words = None;
        if self.reserved() == Some("in") {
            self.eat("in");
            let mut items = Vec::new();
            loop {
                self.skip_blanks();
                if self.at_end_of_word() {
                    break;
                }
                items.push(self.word()?);
            }
            words = Some(items);
        }
        self.skip_blanks();
        self.eat(";");
        Ok(Kind::For(name, words, self.do_group()?))
    }

    pub(super) fn case_command(&mut self) -> Result<Kind, Unreadable> {
        self.eat("case");
        self.skip_blanks();
        let mut words = vec![self.word()?];
        self.expect("in")?;
        let mut lists = Vec::new();
        loop {
            self.skip_lines()?;
            if self.reserved() == Some("esac") {
                self.eat("esac");
                return Ok(Kind::Branches(words, lists));
            }
            self.eat("(");
            loop {
                self.skip_blanks();
                words.push(self.word()?);
                self.skip_blanks();
                if self.eat(")") {
                    break;
                }
                if !self.eat("|") {
                    return Err(Unreadable("an unusual pattern"));
                }
            }
            lists.push(self.list()?);
            self.skip_lines()?;
            if !self.eat(";;") && self.reserved() != Some("esac") {
                return Err(Unreadable("an unusual case"));
            }
        }
    }

    /// Reads `[[ ... ]]`.
    pub(super) fn test_command(&mut self) -> Result<Kind, Unreadable> {
        self.eat("[[");
        let mut words = Vec::new();
        loop {
            self.skip_lines()?;
            if self.reserved() == Some("]]") {
                self.eat("]]");
                return Ok(Kind::Test(words));
            }
            if self.eat("&&") || self.eat("||") || self.eat("<") || self.eat(">") {
                continue;
            }
            let before = self.at;
            words.push(self.word()?);
            if self.at == before {
                return Err(Unreadable("an unusual test"));
            }
        }
    }
}
