//! Reads the options of a program. An option that is not in its list makes the command opaque.

use super::expand::Arg;
use super::shell::Shell;

/// The options of a program that change nothing about what it reads and writes, and those that its
/// model looks at. Long names are separated by spaces.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    /// Letters without a value.
    pub(super) flags: &'static str,
    /// Letters with a value.
    pub(super) valued: &'static str,
    /// Long names without a value, or with one after `=` only.
    pub(super) long: &'static str,
    /// Long names with a value.
    pub(super) long_valued: &'static str,
}

/// What is on a command line after the program.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    options: Vec<(String, Option<Arg>)>,
    pub(super) positional: Vec<Arg>,
    /// How many of them are in front of `--`, if it is there.
    pub(super) before_dashes: Option<usize>,
}

impl Parsed {
    /// Whether one of these options is there.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.options.iter().any(|(name, _)| names.contains(&name.as_str()))
    }

    /// Whether there are no other options than these.
    pub(super) fn has_only(&self, names: &[&str]) -> bool {
        self.options.iter().all(|(name, _)| names.contains(&name.as_str()))
    }

    /// The values of these options.
    pub(super) fn values(&self, names: &[&str]) -> Vec<Arg> {
        self.options
            .iter()
            .filter(|(name, _)| names.contains(&name.as_str()))
            .filter_map(|(_, value)| value.clone())
            .collect()
    }
}

impl Shell<'_> {
    /// Reads options and positional arguments; nothing if that is not certain, which is noted.
    pub(super) fn options(&mut self, program: &str, args: &[Arg], spec: Options) -> Option<Parsed> {
        let (parsed, _) = self.options_until(program, args, spec, false)?;
        Some(parsed)
    }

    /// The same for a program whose options end with its first argument: the rest is a command.
    pub(super) fn leading_options(&mut self, program: &str, args: &[Arg], spec: Options) -> Option<(Parsed, Vec<Arg>)> {
        self.options_until(program, args, spec, true)
    }

    fn options_until(
        &mut self,
        program: &str,
        args: &[Arg],
        spec: Options,
        leading: bool,
    ) -> Option<(Parsed, Vec<Arg>)> {
        let mut parsed = Parsed::default();
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            if !arg.known {
                self.opaque(format!("an argument of `{program}` that is not known"));
                return None;
            }
            let text = arg.text.as_str();
            let is_option = text.len() > 1 && text.starts_with('-');
            if is_option && (arg.glob || arg.below) {
                self.opaque(format!("an option of `{program}` that is not known"));
                return None;
            }
            if text == "--" {
                parsed.before_dashes = Some(parsed.positional.len());
                parsed.positional.extend(rest.cloned());
                return Some((parsed, Vec::new())).map(|(parsed, none)| split(parsed, none, leading));
            }
            if !is_option {
                if leading {
                    let command = std::iter::once(arg).chain(rest).cloned().collect();
                    return Some((parsed, command));
                }
                parsed.positional.push(arg.clone());
                continue;
            }
            let read = match text.strip_prefix("--") {
                Some(long) => long_option(long, &mut rest, spec, &mut parsed),
                None => short_options(text.get(1..)?, &mut rest, spec, &mut parsed),
            };
            if !read {
                let name: String = text.chars().take(40).collect();
                self.opaque(format!("option `{name}` of `{program}`"));
                return None;
            }
        }
        Some((parsed, Vec::new()))
    }
}

/// After `--`, the arguments of a program that runs another are that program.
fn split(mut parsed: Parsed, mut command: Vec<Arg>, leading: bool) -> (Parsed, Vec<Arg>) {
    if leading {
        command = std::mem::take(&mut parsed.positional);
    }
    (parsed, command)
}

fn long_option(long: &str, rest: &mut std::slice::Iter<'_, Arg>, spec: Options, parsed: &mut Parsed) -> bool {
    let (name, value) = match long.split_once('=') {
        Some((name, value)) => (name, Some(Arg::literal(value))),
        None => (long, None),
    };
    if name.is_empty() {
        return false;
    }
    if spec.long_valued.split(' ').any(|known| known == name) {
        let Some(value) = value.or_else(|| rest.next().cloned()) else { return false };
        if value.many {
            return false;
        }
        parsed.options.push((name.to_owned(), Some(value)));
        return true;
    }
    if spec.long.split(' ').any(|known| known == name) {
        parsed.options.push((name.to_owned(), value));
        return true;
    }
    false
}

fn short_options(letters: &str, rest: &mut std::slice::Iter<'_, Arg>, spec: Options, parsed: &mut Parsed) -> bool {
    for (at, letter) in letters.char_indices() {
        if spec.valued.contains(letter) {
            let inline = letters.get(at.saturating_add(letter.len_utf8())..).unwrap_or_default();
            let value = if inline.is_empty() { rest.next().cloned() } else { Some(Arg::literal(inline)) };
            let Some(value) = value.filter(|value| !value.many) else { return false };
            parsed.options.push((letter.to_string(), Some(value)));
            return true;
        }
        if !spec.flags.contains(letter) {
            return false;
        }
        parsed.options.push((letter.to_string(), None));
    }
    true
}
