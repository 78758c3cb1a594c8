//! The name by which this program was called, used in suggested commands so that they can be
//! pasted.

use std::path::Path;

/// Returns `charter`, or the relative path by which the program was started (`target/debug/charter`
/// with `cargo run`).
pub(crate) fn name() -> String {
    let first = std::env::args_os().next().unwrap_or_default();
    of(Path::new(&first))
}

fn of(path: &Path) -> String {
    let plain = |text: &&str| {
        let fine = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        text.ends_with("charter") && text.contains('/') && text.chars().all(fine)
    };
    // Absolute paths are too long to suggest.
    let relative = path.to_str().filter(|_| path.is_relative());
    relative.filter(plain).unwrap_or("charter").to_owned()
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn relative_paths_are_kept() {
        for (called, name) in [
            ("charter", "charter"),
            ("target/debug/charter", "target/debug/charter"),
            ("/usr/local/bin/charter", "charter"),
            ("a b/charter", "charter"),
            ("target/debug/deps/cmd-123", "charter"),
            ("", "charter"),
        ] {
            assert_eq!(of(called.as_ref()), name);
        }
    }
}
