//! Patterns of strings: ids, versions, durations, variable names.

use crate::grammar::Pattern;

pub(super) static ID: Pattern = Pattern {
    what: "a name such as `my-charter`",
    regex: "^[a-z][a-z0-9-]*$",
    test: |text| {
        text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    },
    help: "lowercase letters, digits and `-`, starting with a letter",
};

pub(super) static VERSION: Pattern = Pattern {
    what: "a semantic version such as `1.2.0`",
    regex: r"^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$",
    test: is_version,
    help: "three numbers, such as `1.2.0`, `0.3.1` or `2.0.0-beta.1`",
};

pub(super) static LENGTH: Pattern = Pattern {
    what: "a duration such as `2s`",
    regex: charter_expr::DELAY_PATTERN,
    test: |text| text.ends_with(|c: char| c.is_ascii_alphabetic()) && charter_expr::parse_delay(text).is_ok(),
    help: "write `500ms`, `5s`, `1h30m` or milliseconds; the host reads it, so names and expressions are not allowed",
};

pub(super) static VARIABLE: Pattern = Pattern {
    what: "the name of a variable",
    regex: "^[A-Za-z_][A-Za-z0-9_]*$",
    test: |text| {
        text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    },
    help: "letters, digits and `_`, not starting with a digit",
};

fn is_version(text: &str) -> bool {
    let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
    let (core, pre) = text.split_once('-').map_or((text, None), |(core, pre)| (core, Some(pre)));
    let number = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) && (part.len() == 1 || !part.starts_with('0'))
    };
    let word =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'-');
    core.split('.').count() == 3 && core.split('.').all(number) && pre.is_none_or(word) && build.is_none_or(word)
}
