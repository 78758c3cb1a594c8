//! Reads the options of a program. An option that is not in its list makes the command opaque.

use super::expand::Arg;
use super::shell::Shell;

/// The options of a program that change nothing about what it reads and writes, and those that its
/// model looks at. Long names are separated by spaces.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    /// Letters without a value.
    pub(super) flags: &'static str,
    /// Letters with a value. With `?` behind it, a value is attached or not there: `-U3`.
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
        read(program, args, spec, false).map(|(parsed, _)| parsed).map_err(|reason| self.opaque(reason)).ok()
    }

    /// The same for a program whose options end with its first argument: the rest is a command.
    pub(super) fn leading_options(&mut self, program: &str, args: &[Arg], spec: Options) -> Option<(Parsed, Vec<Arg>)> {
        read(program, args, spec, true).map_err(|reason| self.opaque(reason)).ok()
    }
}

/// Reads options and positional arguments, or says why that is not certain. With `leading`, the
/// options end with the first argument, and the rest is a command.
pub(super) fn read(program: &str, args: &[Arg], spec: Options, leading: bool) -> Result<(Parsed, Vec<Arg>), String> {
    let mut parsed = Parsed::default();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if !arg.known {
            return Err(format!("an argument of `{program}` that is not known"));
        }
        let text = arg.text.as_str();
        let is_option = text.len() > 1 && text.starts_with('-');
        if is_option && (arg.glob || arg.below) {
            return Err(format!("an option of `{program}` that is not known"));
        }
        if text == "--" {
            parsed.before_dashes = Some(parsed.positional.len());
            parsed.positional.extend(rest.cloned());
            return Ok(split(parsed, Vec::new(), leading));
        }
        if !is_option {
            if leading {
                let command = std::iter::once(arg).chain(rest).cloned().collect();
                return Ok((parsed, command));
            }
            parsed.positional.push(arg.clone());
            continue;
        }
        let known = match text.strip_prefix("--") {
            Some(long) => long_option(long, &mut rest, spec, &mut parsed),
            None => short_options(text.get(1..).unwrap_or_default(), &mut rest, spec, &mut parsed),
        };
        if !known {
            let name: String = text.chars().take(40).collect();
            return Err(format!("option `{name}` of `{program}`"));
        }
    }
    Ok((parsed, Vec::new()))
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
        if let Some(position) = spec.valued.find(letter).filter(|_| letter != '?') {
            let inline = letters.get(at.saturating_add(letter.len_utf8())..).unwrap_or_default();
            if spec.valued.get(position..).unwrap_or_default().chars().nth(1) == Some('?') {
                let value = (!inline.is_empty()).then(|| Arg::literal(inline));
                parsed.options.push((letter.to_string(), value));
                return true;
            }
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
