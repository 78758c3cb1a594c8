//! JSON pointers (RFC 6901). Only this module escapes and unescapes their tokens.

use std::borrow::Cow;

/// Escapes a key as a token of a pointer: `~` becomes `~0`, `/` becomes `~1`.
#[must_use]
pub fn escape(key: &str) -> Cow<'_, str> {
    if key.contains(['~', '/']) { key.replace('~', "~0").replace('/', "~1").into() } else { key.into() }
}

/// Returns the key for a token of a pointer; the inverse of [`escape`].
#[must_use]
pub fn unescape(token: &str) -> Cow<'_, str> {
    if token.contains('~') { token.replace("~1", "/").replace("~0", "~").into() } else { token.into() }
}

/// Returns the pointer to a key of the object at `pointer`.
#[must_use]
pub fn join(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", escape(key))
}

/// Returns the keys of a pointer, outermost first.
pub fn keys(pointer: &str) -> impl Iterator<Item = Cow<'_, str>> {
    pointer.split('/').skip(1).map(unescape)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_key_survives_a_pointer(outer in "[a~/01]{0,6}", inner in any::<String>()) {
            let pointer = join(&join("", &outer), &inner);
            prop_assert_eq!(keys(&pointer).collect::<Vec<_>>(), [outer.as_str(), inner.as_str()]);
            let value = serde_json::json!({outer: {inner: 1}});
            prop_assert_eq!(value.pointer(&pointer), Some(&1.into()));
        }
    }
}
