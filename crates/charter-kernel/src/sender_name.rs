//! The names that a sender may have, as its id or as a role.

use icu_normalizer::ComposingNormalizerBorrowed;

use crate::visible::disguises;

/// Names that hosts and the kernel write into `by` for what they do themselves: timers, answers of
/// actors, events of the charter. A sender can have none of them, neither as its id nor as a role.
pub const RESERVED_NAMES: [&str; 1] = [SYSTEM];

pub(crate) const SYSTEM: &str = "system";

/// Checks that a sender may have a name, as its id or as a role.
///
/// # Errors
/// The name is one of the [`RESERVED_NAMES`], or could look like another one: it begins or ends
/// with a space, has a character that is not seen, or is not in Unicode's normal form C.
pub fn check_name(name: &str) -> Result<(), InvalidName> {
    if RESERVED_NAMES.contains(&name) {
        return Err(InvalidName::Reserved { name: name.into() });
    }
    if name.starts_with(' ') || name.ends_with(' ') {
        return Err(InvalidName::Blank { name: shown(name) });
    }
    if let Some(found) = name.chars().find(|c| disguises(*c)) {
        return Err(InvalidName::Hidden { name: shown(name), character: format!("U+{:04X}", u32::from(found)) });
    }
    if name.is_ascii() {
        return Ok(());
    }
    let nfc = ComposingNormalizerBorrowed::new_nfc();
    match nfc.is_normalized(name) {
        true => Ok(()),
        false => Err(InvalidName::NotComposed { name: shown(name), composed: shown(&nfc.normalize(name)) }),
    }
}

/// A name with its hidden characters as escapes, truncated if it is long.
fn shown(name: &str) -> String {
    const MAX: usize = 64;
    let mut shown = String::new();
    for c in name.chars().take(MAX) {
        match disguises(c) {
            true => shown.extend(c.escape_unicode()),
            false => shown.push(c),
        }
    }
    if name.chars().nth(MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// The characters of a name by their numbers, because the two forms of a name look the same.
fn code_points(name: &str) -> String {
    let number = |c: char| format!("U+{:04X}", u32::from(c));
    name.chars().map(number).collect::<Vec<_>>().join(" ")
}

/// A sender has a name that no sender can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// The name belongs to the host.
    #[error("`{name}` is the host itself; no sender can have this id or role")]
    Reserved {
        /// The name.
        name: String,
    },
    /// The name begins or ends with a space.
    #[error("`{name}` begins or ends with a space, so it looks like another id or role; remove the space")]
    Blank {
        /// The name.
        name: String,
    },
    /// The name has a character that is not seen, or changes how others are seen.
    #[error(
        "`{name}` has the character {character}, which is not seen, so it looks like another id or role; remove the character"
    )]
    Hidden {
        /// The name, with escapes.
        name: String,
        /// Its number, as Unicode writes it.
        character: String,
    },
    /// The name has another form that looks the same, and that other senders use.
    #[error(
        "`{name}` is written with other characters than the same name usually is (it is not in Unicode's form NFC), so it looks like another id or role; write it as `{composed}` ({})",
        code_points(.composed)
    )]
    NotComposed {
        /// The name.
        name: String,
        /// The same name in the form NFC.
        composed: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Principal;

    /// Otherwise two names that look the same would count as two persons.
    #[test]
    fn a_sender_does_not_look_like_another() {
        for id in ["", "ana", "Ana María", "安娜", "ana@example.com", "CN=ana, O=x", "آنا", "👩 ana"] {
            assert_eq!(Principal::new(id, &[]).check_sender(), Ok(()), "{id}");
        }
        let hidden = [
            "ana\u{200b}",
            "\u{feff}ana",
            "a\u{ad}na",
            "ana\u{e0041}",
            "\u{202e}ana",
            "an\u{200d}a",
            "ana\u{fe0f}",
            "ana\u{a0}",
            "ana\n",
            "\tana",
            "ana\0",
            "ana\u{2800}",
            "ana\u{3164}",
            "an\u{34f}a",
            "ana\u{e0100}",
            "ana\u{2029}",
        ];
        for id in hidden {
            let refused = Principal::new(id, &[]).check_sender().unwrap_err();
            assert!(matches!(refused, InvalidName::Hidden { .. }), "{refused}");
            assert!(Principal::new("ana", &[id]).check_sender().is_err());
        }
        // Decomposed, a singleton, marks in another order, a syllable in parts.
        for (id, composed) in [
            ("Jose\u{301}", "Jos\u{e9}"),
            ("\u{212a}ate", "Kate"),
            ("q\u{307}\u{323}", "q\u{323}\u{307}"),
            ("\u{1100}\u{1161}", "\u{ac00}"),
        ] {
            let refused = InvalidName::NotComposed { name: id.into(), composed: composed.into() };
            assert_eq!(check_name(id), Err(refused));
        }
        let refused = check_name("Jose\u{301}").unwrap_err().to_string();
        assert!(refused.ends_with("write it as `Jos\u{e9}` (U+004A U+006F U+0073 U+00E9)"), "{refused}");
        for id in ["José", "Kate", "q\u{323}\u{307}", "가", "தமிழ்", "বাংলা", "ไทย", "हिन्दी"]
        {
            assert_eq!(check_name(id), Ok(()), "{id}");
        }
        for id in [" ana", "ana ", " "] {
            assert_eq!(check_name(id), Err(InvalidName::Blank { name: id.into() }));
        }
        let refused = check_name("ana\u{200b}").unwrap_err().to_string();
        assert!(refused.starts_with("`ana\\u{200b}` has the character U+200B, which is not seen"), "{refused}");
        assert!(check_name(&"\u{200b}".repeat(5_000)).unwrap_err().to_string().len() < 1_000);
    }
}
