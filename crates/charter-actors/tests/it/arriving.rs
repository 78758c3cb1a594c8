//! Text that arrives in pieces is shown without secrets.

use charter_actors::{ArrivingText, Secret, Secrets};

const KEY: &str = "sk-very-secret-0123456789";
const MAX_SHOWN: usize = 2_048;

/// Whether a text has so much of the key that it helps to guess the rest.
fn leaks(text: &str) -> bool {
    (0..=KEY.len() - 8).any(|at| text.contains(&KEY[at..at + 8]))
}

#[test]
fn a_key_is_not_shown_wherever_the_pieces_end() {
    let secrets: Secrets = [Secret::new(format!("Bearer {KEY}"))].iter().collect();
    for step in [3, 7, 64] {
        let said = format!("{}{KEY} and {KEY}", "ä word. ".repeat(step)).repeat(12);
        let mut text = ArrivingText::default();
        let chars: Vec<char> = said.chars().collect();
        for piece in chars.chunks(step) {
            text.push(&piece.iter().collect::<String>(), &secrets);
            let end = text.end(&secrets);
            assert!(!leaks(&end), "{end}");
            assert!(end.len() <= MAX_SHOWN);
        }
    }
}

#[test]
fn no_beginning_of_a_secret_is_shown_while_it_arrives() {
    for key in ["hunter22", "pin123", "longSecretKey99"] {
        let secrets: Secrets = [Secret::new(key.to_owned())].iter().collect();
        let mut text = ArrivingText::default();
        text.push("password: ", &secrets);
        for c in key.chars() {
            text.push(&c.to_string(), &secrets);
            let end = text.end(&secrets);
            assert!(end == "password: " || end == "password: [secret]", "{end}");
        }
        text.push(" it is.", &secrets);
        assert_eq!(text.end(&secrets), "password: [secret] it is.");
    }
}

#[test]
fn without_secrets_the_end_is_shown_as_it_is() {
    let (mut text, none) = (ArrivingText::default(), Secrets::default());
    text.push("a", &none);
    assert_eq!(text.end(&none), "a");
    for n in 0..10_000 {
        text.push(&format!(" {n}"), &none);
    }
    assert!(text.end(&none).ends_with(" 9998 9999"));
}
