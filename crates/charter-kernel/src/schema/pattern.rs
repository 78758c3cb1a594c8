//! Patterns: ECMAScript's syntax, translated for the crate `regex`, which matches in linear time.

use charter_expr::{Fuel, Pattern, PatternError};

use super::TooCostly;

/// A compiled pattern.
#[derive(Debug)]
pub(super) enum Matcher {
    /// `^prefix`
    Prefix(Box<str>),
    /// `^prefix[A-Za-z0-9_-]+$`
    Word(Box<str>),
    /// Any other pattern.
    Regex(Pattern),
}

impl Matcher {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// Says why the pattern cannot be used, and what to write instead.
    pub(super) fn compile(pattern: &str) -> Result<Matcher, String> {
        let is_plain = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if let Some(rest) = pattern.strip_prefix('^') {
            if is_plain(rest) {
                return Ok(Matcher::Prefix(rest.into()));
            }
            if let Some(prefix) = rest.strip_suffix("[A-Za-z0-9_-]+$").filter(|prefix| is_plain(prefix)) {
                return Ok(Matcher::Word(prefix.into()));
            }
        }
        let translated = translated(pattern)?;
        Pattern::compile(&translated).map(Matcher::Regex).map_err(|e| match e {
            PatternError::Syntax(why) => format!("`{pattern}` is not a regular expression: {why}"),
            PatternError::TooLarge => format!(
                "the pattern `{pattern}` needs more than 2 MiB when compiled; use smaller repetitions, or \
                 `maxLength` for the length"
            ),
        })
    }

    /// Whether the pattern is found in the text.
    pub(super) fn is_match(&self, text: &str, fuel: &mut Fuel) -> Result<bool, TooCostly> {
        let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        match self {
            Matcher::Prefix(prefix) => Ok(text.starts_with(&**prefix)),
            Matcher::Word(prefix) => {
                fuel.spend((text.len() / 64) as u64)?;
                let rest = text.strip_prefix(&**prefix);
                Ok(rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(is_word)))
            }
            Matcher::Regex(pattern) => Ok(pattern.is_match(text, fuel)?),
        }
    }
}

/// Translates a pattern for the crate `regex`.
///
/// # Errors
/// Says why the pattern cannot be used, and what to write instead.
pub(super) fn translated(pattern: &str) -> Result<String, String> {
    Translator::new(pattern).translate()
}

/// Upper limit of the length of a pattern, in bytes.
const MAX_LENGTH: usize = 10_000;

/// ECMAScript's white space, as the contents of a class.
const SPACE: &str = r"\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff";

/// What a hyphen in a class may mean.
#[derive(Clone, Copy, PartialEq)]
enum Hyphen {
    /// At the start, or after a range or a class escape: itself.
    Literal,
    /// After a character: it begins a range, unless it is the last one.
    Range,
    /// In a range: the character after it ends the range.
    InRange,
}

struct Translator<'p> {
    pattern: &'p str,
    chars: std::iter::Peekable<std::str::Chars<'p>>,
    out: String,
}

impl<'p> Translator<'p> {
    fn new(pattern: &'p str) -> Translator<'p> {
        Translator { pattern, chars: pattern.chars().peekable(), out: String::new() }
    }

    fn refused(&self, what: &str) -> String {
        format!(
            "{what} in `{}` is not supported, because its matching time has no limit: use several patterns under \
             `allOf`, `anyOf` or `not`",
            self.pattern
        )
    }

    fn translate(mut self) -> Result<String, String> {
        if self.pattern.len() > MAX_LENGTH {
            return Err(format!("the pattern has more than {MAX_LENGTH} bytes"));
        }
        while let Some(c) = self.chars.next() {
            match c {
                '\\' => self.escape(false)?,
                '[' => self.class()?,
                '(' if self.chars.peek() == Some(&'?') => {
                    let mut ahead = self.chars.clone().skip(1);
                    let (first, second) = (ahead.next(), ahead.next());
                    if matches!((first, second), (Some('=' | '!'), _) | (Some('<'), Some('=' | '!'))) {
                        return Err(self.refused("look-around"));
                    }
                    self.out.push('(');
                }
                _ => self.out.push(c),
            }
        }
        Ok(self.out)
    }

    /// Translates an escape sequence, after its backslash. Returns with the output at the end of
    /// one or more characters of a class, if `in_class`.
    fn escape(&mut self, in_class: bool) -> Result<(), String> {
        let Some(c) = self.chars.next() else {
            return Err(format!("`{}` ends with a backslash", self.pattern));
        };
        let class = match c {
            'd' | 'D' => "0-9",
            'w' | 'W' => "A-Za-z0-9_",
            's' | 'S' => SPACE,
            '1'..='9' | 'k' if !in_class => return Err(self.refused("a back-reference")),
            '0' => {
                self.out.push_str(r"\x00");
                return Ok(());
            }
            'c' => {
                let letter = self.chars.next().filter(char::is_ascii_alphabetic);
                let letter = letter.ok_or_else(|| format!("`\\c` in `{}` needs a letter", self.pattern))?;
                self.out.push_str(&format!(r"\x{:02x}", u32::from(letter) & 31));
                return Ok(());
            }
            'b' if in_class => {
                self.out.push_str(r"\x08");
                return Ok(());
            }
            // ECMAScript has no such escapes; elsewhere they mean something else.
            'a' | 'A' | 'z' | 'Z' | 'U' | '<' | '>' => {
                return Err(format!("`\\{c}` in `{}` is not a known escape", self.pattern));
            }
            _ => {
                self.out.push('\\');
                self.out.push(c);
                return Ok(());
            }
        };
        self.out.push_str(if c.is_ascii_uppercase() { "[^" } else { "[" });
        self.out.push_str(class);
        self.out.push(']');
        Ok(())
    }

    /// Translates a class, after its opening bracket: what other syntaxes read as set operations is
    /// escaped.
    fn class(&mut self) -> Result<(), String> {
        let negated = self.chars.next_if_eq(&'^').is_some();
        if self.chars.next_if_eq(&']').is_some() {
            self.out.push_str(if negated { "(?s:.)" } else { "[a&&b]" });
            return Ok(());
        }
        self.out.push_str(if negated { "[^" } else { "[" });
        let mut hyphen = Hyphen::Literal;
        while let Some(c) = self.chars.next() {
            let character = match hyphen {
                Hyphen::InRange => Hyphen::Literal,
                _ => Hyphen::Range,
            };
            match c {
                ']' => {
                    self.out.push(']');
                    return Ok(());
                }
                '\\' => {
                    let is_class = matches!(self.chars.peek(), Some('d' | 'D' | 'w' | 'W' | 's' | 'S' | 'p' | 'P'));
                    if is_class && hyphen == Hyphen::InRange {
                        return Err(format!("a range in `{}` ends with a class", self.pattern));
                    }
                    self.escape(true)?;
                    hyphen = if is_class { Hyphen::Literal } else { character };
                }
                '-' if hyphen == Hyphen::Range && self.chars.peek() != Some(&']') => {
                    self.out.push('-');
                    hyphen = Hyphen::InRange;
                }
                '-' | '[' | '&' | '~' => {
                    self.out.push('\\');
                    self.out.push(c);
                    hyphen = character;
                }
                _ => {
                    self.out.push(c);
                    hyphen = character;
                }
            }
        }
        Err(format!("a class in `{}` is not closed with `]`", self.pattern))
    }
}

#[cfg(test)]
mod tests {
    use charter_expr::Fuel;

    use super::Matcher;

    fn finds(pattern: &str, text: &str) -> bool {
        Matcher::compile(pattern).unwrap().is_match(text, &mut Fuel::new(10_000)).unwrap()
    }

    #[test]
    fn ecmascript_syntax_is_translated() {
        for (pattern, yes, no) in [
            ("^a_1", "a_1x", "xa_1"),
            ("^p_[A-Za-z0-9_-]+$", "p_x-1", "p_"),
            (r"^\d+$", "12", "\u{0661}"),
            (r"^[\d.]+$", "1.2", "a"),
            (r"^[^\D]$", "1", "a"),
            (r"^\w+$", "a_1", "ä"),
            (r"^\S$", "a", "\u{feff}"),
            (r"^[\s-]+$", " -\u{2003}", "a"),
            (r"^[\w-.]+$", "a-.", ","),
            (r"^[a-]$", "-", "b"),
            (r"^[+--]$", ",", "."),
            (r"^[a&&b]+$", "a&", "c"),
            (r"^[[a]+$", "[a", "b"),
            (r"^[~~]$", "~", "a"),
            (r"^[]$|^x", "x", ""),
            (r"^[^]$", "\n", ""),
            (r"^\cJ$", "\n", "J"),
            (r"^[\b]\0$", "\u{8}\0", "b"),
            (r"^\_+$", "__", "\\_"),
            (r"^\/\-\u00e9\x41\p{L}$", "/-éAß", "/-éA1"),
            (r"^(?<year>\d{4})-(?:a|b)$", "2026-a", "2026-c"),
        ] {
            assert!(finds(pattern, yes), "{pattern} {yes:?}");
            assert!(!finds(pattern, no), "{pattern} {no:?}");
        }
    }

    #[test]
    fn what_cannot_be_matched_in_linear_time_is_refused_with_the_reason() {
        for (pattern, reason) in [
            ("(?=a)", "look-around"),
            ("(?!a)b", "look-around"),
            ("(?<=a)b", "look-around"),
            ("(?<!a)b", "look-around"),
            (r"(a)\1", "back-reference"),
            (r"(?<n>a)\k<n>", "back-reference"),
            (r"\a", "not a known escape"),
            ("(", "unclosed group"),
            ("[a", "not closed"),
            (r"a\", "backslash"),
            (r"[a-\d]", "ends with a class"),
            (r"\c1", "needs a letter"),
            ("((a{1000}){1000}){1000}", "needs more than 2 MiB"),
            (&"a".repeat(20_000), "more than 10000 bytes"),
        ] {
            let why = Matcher::compile(pattern).unwrap_err();
            assert!(why.contains(reason), "{pattern}: {why}");
        }
    }

    #[test]
    fn nested_quantifiers_take_linear_time_and_cost_fuel() {
        let evil = Matcher::compile("^(a+)+$").unwrap();
        let text = format!("{}!", "a".repeat(100_000));
        let mut fuel = Fuel::new(1_000_000);
        assert!(!evil.is_match(&text, &mut fuel).unwrap());
        assert!(fuel.left() < 1_000_000 - 1_000);
        assert!(evil.is_match(&text, &mut Fuel::new(1_000)).is_err());
    }
}
