//! What people have said about the chosen files.

/// Words of somebody who wants a file to be left out.
const OUT: [&str; 10] = ["drop", "exclude", "ignore", "leave", "no", "not", "omit", "remove", "skip", "without"];

/// Whether a text says that a file is to be left out: it has a word such as `leave` or `without`,
/// and the path of the file, its name, or a folder that it is in (`secrets/`). Nothing else in the
/// text is understood.
#[must_use]
pub fn leaves_out(text: &str, path: &str) -> bool {
    let words = || text.split(|c: char| c.is_whitespace() || "`'\"(),;:!?".contains(c)).filter(|word| !word.is_empty());
    let says = |word: &str| OUT.iter().any(|out| out.eq_ignore_ascii_case(word.trim_end_matches('.')));
    let name = path.rsplit('/').next().unwrap_or(path);
    let means = |word: &str| {
        let plain = word.trim_start_matches("./");
        [plain, plain.trim_end_matches('.')].iter().any(|word| {
            *word == path || *word == name || word.len() > 1 && word.ends_with('/') && path.starts_with(word)
        })
    };
    words().any(says) && words().any(means)
}

#[cfg(test)]
mod tests {
    use super::leaves_out;

    #[test]
    fn a_file_is_left_out_if_the_text_says_so() {
        for (text, path) in [
            ("leave .env out", ".env"),
            ("Please remove `src/a.rs`.", "src/a.rs"),
            ("Without a.rs, please", "src/a.rs"),
            ("not secrets/", "secrets/deep/x"),
            ("Skip ./README.md.", "README.md"),
        ] {
            assert!(leaves_out(text, path), "{text}");
        }
        for (text, path) in [
            ("add .env", ".env"),
            ("leave it", ".env"),
            ("leave .env out", ".env.example"),
            ("leave / out", "src/a.rs"),
            ("notes about a.rs", "a.rs"),
            ("", "a"),
        ] {
            assert!(!leaves_out(text, path), "{text}");
        }
    }
}
