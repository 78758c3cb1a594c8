//! Secrets are removed from texts and values, in all encodings that the documentation names.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};
use charter_actors::{Fault, Secret, Secrets};
use serde_json::json;

fn secrets(text: &str) -> Secrets {
    [Secret::new(text)].iter().collect()
}

fn redacted(secret: &str, text: &str) -> String {
    secrets(secret).redact(text).into_owned()
}

const HARD: &str = "s/k+1 \"ü&%\\x<😀>=";

#[test]
fn a_secret_is_found_in_every_encoding() {
    let json = serde_json::to_string(HARD).unwrap();
    let twice = serde_json::to_string(&json).unwrap();
    let ascii: String = HARD.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
    let percent: String = HARD.bytes().map(|b| format!("%{b:02x}")).collect();
    let form = percent.replace("%20", "+").replace("%78", "x");
    let html = HARD.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&#62;");
    let hex: String = HARD.bytes().map(|b| format!("{b:02X}")).collect();
    let slashes = json.replace('/', "\\/");
    let all = [
        HARD,
        json.trim_matches('"'),
        twice.trim_matches('"').trim_matches(['\\', '"']),
        &ascii,
        &percent,
        &form,
        &html,
        &hex,
        slashes.trim_matches('"'),
    ];
    for text in all {
        assert_eq!(redacted(HARD, &format!("got {text}.")), "got [secret].", "{text}");
    }
}

/// An error page in JSON in the parameter of a URL.
#[test]
fn a_secret_is_found_in_three_encodings_one_around_the_other() {
    fn json(text: &str) -> String {
        let text = serde_json::to_string(text).unwrap();
        // As Go writes it.
        text.trim_matches('"').replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
    }
    fn url(text: &str) -> String {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~".contains(&b);
        text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
    }
    fn html(text: &str) -> String {
        let special = |c: char| "&<>\"'%\\".contains(c) || !c.is_ascii();
        text.chars().map(|c| if special(c) { format!("&#{};", u32::from(c)) } else { c.to_string() }).collect()
    }
    let mut texts = vec![HARD.to_owned()];
    for layers in 1..=3 {
        texts = texts.iter().flat_map(|text| [json(text), url(text), html(text)]).collect();
        for text in &texts {
            assert_eq!(redacted(HARD, &format!("got {text}.")), "got [secret].", "{layers}: {text}");
        }
    }
    assert_eq!(redacted("a&<\"/+b==Zz", r#"{"p":"a\u0026amp;\u0026lt;\u0026quot;/+b==Zz"}"#), r#"{"p":"[secret]"}"#);
}

/// A proxy escapes some characters, the page another, and both do so again.
#[test]
fn a_secret_is_found_in_mixtures_around_mixtures() {
    fn mixed(text: &str) -> String {
        let one = |(at, c): (usize, char)| match at % 4 {
            0 => format!("%{:02x}", u32::from(c)),
            1 => format!("\\u{:04x}", u32::from(c)),
            2 => format!("&#{};", u32::from(c)),
            _ if c == '\\' || c == '%' || c == '&' => format!("\\u{:04X}", u32::from(c)),
            _ => c.to_string(),
        };
        text.chars().enumerate().map(one).collect()
    }
    let secret = "sk-0123456789~~?";
    let (mut text, mut encoded) = (secret.to_owned(), STANDARD.encode(secret));
    for layers in 1..=3 {
        (text, encoded) = (mixed(&text), mixed(&encoded));
        assert_eq!(redacted(secret, &format!("got {text}.")), "got [secret].", "{layers}: {text}");
        assert!(redacted(secret, &encoded).starts_with("[secret]"), "{layers}: {encoded}");
    }
}

#[test]
fn a_secret_is_found_in_base64_of_more_than_itself() {
    let secret = "sk-0123456789ÿÿÿ~~?";
    for before in ["", "a", "ab", "abc", "user:"] {
        for after in ["", "x", "xy", "xyz"] {
            let whole = format!("{before}{secret}{after}");
            for encoded in [STANDARD.encode(&whole), STANDARD_NO_PAD.encode(&whole), URL_SAFE.encode(&whole)] {
                let said = redacted(secret, &encoded);
                assert!(said.contains("[secret]"), "{encoded}");
                // At the ends, at most the bits of one character are left of the secret.
                let left = said.replace("[secret]", "").trim_end_matches('=').len();
                assert!(left <= (before.len() + after.len()) * 2 + 2, "{encoded} {said}");
            }
        }
    }
}

#[test]
fn an_authorization_counts_without_its_scheme() {
    assert_eq!(redacted("Bearer sesame-sesame", "token sesame-sesame!"), "token [secret]!");
    let basic = format!("Basic {}", STANDARD.encode("ana:open-sesame"));
    assert_eq!(redacted(&basic, "password open-sesame of ana"), "password [secret] of ana");
    assert_eq!(redacted(&basic, &format!("authorization: {basic}")), "authorization: [secret]");
}

#[test]
fn a_short_secret_is_removed_as_a_word_only() {
    assert_eq!(redacted("1234", "pin 1234, order 12345"), "pin [secret], order 12345");
    assert_eq!(redacted("a", "a banana"), "[secret] banana");
    assert_eq!(redacted("", "nothing"), "nothing");
    assert_eq!(redacted(" ", "no thing"), "no thing");
}

#[test]
fn overlapping_secrets_are_one_place() {
    let both: Secrets = [Secret::new("abcdefghij"), Secret::new("ghijklmnop")].iter().collect();
    assert_eq!(both.redact("<abcdefghijklmnop>"), "<[secret]>");
}

#[test]
fn values_keys_numbers_and_failures_are_covered() {
    let number = secrets("1234567890");
    assert_eq!(
        number.redact_json(json!({"1234567890": [1_234_567_890, 12, true, null, "is 1234567890"]})),
        json!({"[secret]": ["[secret]", 12, true, null, "is [secret]"]})
    );
    let fault = Fault::new("failed", "no 1234567890").with("body", "1234567890").retryable();
    let fault = number.redact_fault(fault);
    assert_eq!((fault.message.as_str(), fault.retryable), ("no [secret]", true));
    assert_eq!(fault.details["body"], json!("[secret]"));
}

#[test]
fn a_text_without_the_secret_is_kept() {
    let text = "%zz \\u12 \\ud800 &#xffffffffff; &nope; \\\\\\ %25%25 + sk-012345678 %";
    assert_eq!(redacted("sk-0123456789", text), text);
    assert!(!format!("{:?}{:?}", secrets("sk-0123456789"), Secret::new("sk-0123456789")).contains("sk-"));
}

#[test]
fn a_long_row_of_backslashes_is_read_once() {
    // Read anew at each place, this takes minutes.
    let text = "\\".repeat(1 << 17);
    assert_eq!(redacted("sk-\\very/secret", &text), text);
}
