//! The committed interface against the one the module tells.

/// Whether two interfaces are the same text, whatever the line ends.
pub fn same(committed: &str, made: &str) -> bool {
    committed.lines().eq(made.lines())
}

/// The first line in which they differ, for people.
pub fn difference(committed: &str, made: &str) -> Option<String> {
    let (mut old, mut new) = (committed.lines(), made.lines());
    for line in 1_usize.. {
        let show = |text: Option<&str>| {
            text.map_or_else(|| "the end".to_string(), |text| format!("`{text}`"))
        };
        match (old.next(), new.next()) {
            (None, None) => return None,
            (left, right) if left != right => {
                return Some(format!(
                    "line {line}: {} is committed, {} is what the canister says",
                    show(left),
                    show(right)
                ));
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
    fn the_first_differing_line_is_told() {
        let (old, new) = (
            "service : {\n  a : () -> ();\n}\n",
            "service : {\r\n  b : () -> ();\r\n}\r\n",
        );
        assert!(!same(old, new));
        let told = difference(old, new);
        assert_eq!(
            told.as_deref(),
            Some(
                "line 2: `  a : () -> ();` is committed, `  b : () -> ();` is what the canister says"
            )
        );
        assert_eq!(difference(old, old), None);
        assert!(same(old, &old.replace('\n', "\r\n")));
        assert_eq!(
            difference("a\n", "").as_deref(),
            Some("line 1: `a` is committed, the end is what the canister says")
        );
    }
}
