//! Compares the committed interface with the interface of the module.

/// Describes the first line in which two interfaces differ, ignoring line endings. Returns `None`
/// if they are the same.
pub fn difference(committed: &str, made: &str) -> Option<String> {
    let (mut old, mut new) = (committed.lines(), made.lines());
    for line in 1_usize.. {
        let show = |text: Option<&str>| text.map_or_else(|| "the end".to_string(), |text| format!("`{text}`"));
        match (old.next(), new.next()) {
            (None, None) => return None,
            (left, right) if left != right => {
                return Some(format!("line {line}: {} is committed, but the canister has {}", show(left), show(right)));
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_different_line_is_reported() {
        let (old, new) = ("service : {\n  a : () -> ();\n}\n", "service : {\r\n  b : () -> ();\r\n}\r\n");
        let told = difference(old, new);
        assert_eq!(
            told.as_deref(),
            Some("line 2: `  a : () -> ();` is committed, but the canister has `  b : () -> ();`")
        );
        assert_eq!(difference(old, old), None);
        assert_eq!(difference(old, &old.replace('\n', "\r\n")), None);
        assert_eq!(difference("a\n", "").as_deref(), Some("line 1: `a` is committed, but the canister has the end"));
    }
}
