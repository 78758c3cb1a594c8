//! Expands words: braces, `~`, variables. What is not known stays unknown.

use super::shell::{Shell, Value};
use super::syntax::{Piece, Word};

/// Words that one word may become.
const MAX_WORDS: usize = 64;
/// Braces in one word.
const MAX_BRACES: usize = 12;
/// Upper limit of an expanded word.
const MAX_WORD_BYTES: usize = 64 * 1024;

/// An expanded word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arg {
    pub(super) text: String,
    /// Whether `text` is all of it.
    pub(super) known: bool,
    /// Whether it may be several words, or none.
    pub(super) many: bool,
    /// Whether `text` is a pattern for names of files.
    pub(super) glob: bool,
    /// Whether it stands for each file below the path, as `{}` of `find -exec`.
    pub(super) below: bool,
}

impl Arg {
    /// A word as it is.
    pub(super) fn literal(text: &str) -> Self {
        Self { text: text.to_owned(), known: true, many: false, glob: false, below: false }
    }

    /// Words of which nothing is known.
    pub(super) fn unknown() -> Self {
        Self { text: String::new(), known: false, many: true, glob: false, below: false }
    }

    /// The text, if it is certain and one word.
    pub(super) fn exact(&self) -> Option<&str> {
        (self.known && !self.many && !self.glob && !self.below).then_some(self.text.as_str())
    }

    /// How it is shown in a description.
    pub(super) fn shown(&self) -> String {
        if self.known { self.text.clone() } else { "\u{fffd}".to_owned() }
    }
}

impl Shell<'_> {
    /// Expands a word to arguments.
    pub(super) fn expand(&mut self, word: &Word) -> Vec<Arg> {
        let mut words = Vec::new();
        let open = word.iter().filter(|piece| **piece == Piece::Char('{', false)).count();
        if open > MAX_BRACES || !braces(word, &mut words) {
            self.scan(word);
            return vec![Arg::unknown()];
        }
        words.iter().filter_map(|word| self.expand_one(word)).collect()
    }

    /// Expands a word that stays one word and has no braces: the value of an assignment, a word of
    /// `[[`.
    pub(super) fn expand_value(&mut self, word: &Word) -> Arg {
        self.expand_one(word).unwrap_or_else(|| Arg::literal(""))
    }

    /// Runs the substitutions of a word whose value does not matter.
    pub(super) fn scan(&mut self, word: &Word) {
        for piece in word {
            match piece {
                Piece::Command(list, _) => self.subshell(list),
                Piece::Process(list) => self.process(list),
                Piece::Variable(name, _) | Piece::Operation(name, _) => self.uses_variable(name),
                Piece::Char(..) | Piece::Unknown(_) => {}
            }
        }
    }

    fn expand_one(&mut self, word: &Word) -> Option<Arg> {
        let mut arg = Arg::literal("");
        let (mut quoted_special, mut bracket) = (false, false);
        let mut anything = false;
        let tilde = matches!(word.first(), Some(Piece::Char('~', false)));
        // One shell looks `=name` up in its path.
        if matches!(word.first(), Some(Piece::Char('=', false))) && word.len() > 1 {
            arg.known = false;
        }
        for piece in word {
            anything = true;
            if let Piece::Variable(name, _) | Piece::Operation(name, _) = piece {
                self.uses_variable(name);
            }
            match piece {
                Piece::Char(c, quoted) => {
                    // A bracket is part of a pattern only with its end.
                    bracket |= *c == '[' && !quoted;
                    arg.glob |= matches!(c, '*' | '?') && !quoted || *c == ']' && bracket;
                    quoted_special |= matches!(c, '*' | '?' | '[') && *quoted;
                    arg.text.push(*c);
                }
                Piece::Variable(name, _) if name.is_empty() => {}
                Piece::Variable(name, quoted) => match self.variable(name) {
                    Value::Known(value) => {
                        let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,+@%=".contains(c);
                        if *quoted || !value.is_empty() && value.chars().all(plain) {
                            quoted_special |= value.contains(['*', '?', '[']);
                            arg.text.push_str(&value);
                        } else {
                            // One shell splits it, another does not.
                            arg.known = false;
                            arg.many = true;
                        }
                    }
                    Value::Unknown => {
                        arg.known = false;
                        arg.many |= !quoted;
                    }
                },
                Piece::Operation(_, quoted) | Piece::Unknown(quoted) => {
                    arg.known = false;
                    arg.many |= !quoted;
                }
                Piece::Command(list, quoted) => {
                    self.subshell(list);
                    arg.known = false;
                    arg.many |= !quoted;
                }
                Piece::Process(list) => {
                    self.process(list);
                    // What it is depends on the process; nothing on the disk.
                    arg.text.push_str("/dev/stdin");
                }
            }
            if arg.text.len() > MAX_WORD_BYTES {
                return Some(Arg::unknown());
            }
        }
        if arg.glob && quoted_special {
            arg.known = false;
        }
        if arg.known && tilde {
            let rest = arg.text.get(1..).unwrap_or_default().to_owned();
            match self.workspace.home.as_ref().and_then(|home| home.to_str()) {
                Some(home) if rest.is_empty() || rest.starts_with('/') => arg.text = format!("{home}{rest}"),
                _ => arg.known = false,
            }
        } else if arg.known && arg.text.starts_with('~') {
            // A quoted `~` is a name; what follows must not take it for a home.
            arg.text = format!("./{}", arg.text);
        }
        // The value of an assignment, or of `--option=~/...`, may hold one as well.
        let inner =
            word.windows(2).any(|pair| matches!(pair, [Piece::Char('=' | ':', false), Piece::Char('~', false)]));
        arg.known &= !inner;
        anything.then_some(arg)
    }
}

/// Expands braces; `false` if there are too many words, or if it is unclear what they are.
fn braces(word: &[Piece], out: &mut Vec<Word>) -> bool {
    let open = word.iter().position(|piece| *piece == Piece::Char('{', false));
    let Some(open) = open else {
        out.push(word.to_vec());
        return out.len() <= MAX_WORDS;
    };
    let (mut depth, mut commas, mut close) = (0_usize, vec![open], None);
    let mut dots = false;
    for (at, piece) in word.iter().enumerate().skip(open) {
        match piece {
            Piece::Char('{', false) => depth = depth.saturating_add(1),
            Piece::Char('}', false) => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    close = Some(at);
                    break;
                }
            }
            Piece::Char(',', false) if depth == 1 => commas.push(at),
            Piece::Char('.', false) if depth == 1 => {
                dots |= word.get(at.saturating_add(1)) == Some(&Piece::Char('.', false));
            }
            _ => {}
        }
    }
    let Some(close) = close else { return false };
    if commas.len() == 1 {
        // `{}` and `{x}` are words as they are; `{1..3}` is not expanded.
        let open_braces = word.iter().filter(|piece| **piece == Piece::Char('{', false)).count();
        if dots || open_braces > 1 {
            return false;
        }
        out.push(word.to_vec());
        return out.len() <= MAX_WORDS;
    }
    commas.push(close);
    for pair in commas.windows(2) {
        let [from, to] = pair else { continue };
        let mut one = word.get(..open).unwrap_or_default().to_vec();
        one.extend_from_slice(word.get(from.saturating_add(1)..*to).unwrap_or_default());
        one.extend_from_slice(word.get(close.saturating_add(1)..).unwrap_or_default());
        if !braces(&one, out) {
            return false;
        }
    }
    true
}
