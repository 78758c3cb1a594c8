//! Texts that end in the middle of a secret, in any form in which a whole one is found.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use charter_actors::{ArrivingText, Fault, Secret, Secrets};

const KEY: &str = "sk-Zq7/Wv3+Xj9\"Lm2&Rt5<Ny8>Pk1=Hb6ü😀!";

fn secrets() -> Secrets {
    [Secret::new(KEY)].iter().collect()
}

fn json(text: &str) -> String {
    text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect()
}

fn url(text: &str) -> String {
    text.bytes().map(|b| format!("%{b:02X}")).collect()
}

fn html(text: &str) -> String {
    text.chars().map(|c| format!("&#{};", u32::from(c))).collect()
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap().trim_matches('"').to_owned()
}

/// The forms of a text, each with the number of characters that the form of 8 of them has.
fn forms() -> Vec<(&'static str, String, usize)> {
    let whole = [
        ("as it is", (|text| text.to_owned()) as fn(&str) -> String),
        ("JSON", json),
        ("short escapes", quoted),
        ("URL", url),
        ("URL twice", |text| url(text).replace('%', "%25")),
        ("HTML", html),
        ("HTML names", |text| text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")),
        ("JSON in JSON", |text| quoted(&json(text))),
        ("JSON in JSON in JSON in JSON", |text| quoted(&quoted(&quoted(&json(text))))),
        ("URL in JSON", |text| json(&url(text))),
        ("JSON in a URL", |text| url(&json(text))),
        ("HTML in a URL", |text| url(&html(text))),
        ("a URL in HTML", |text| html(&url(text))),
        ("HTML in JSON in a URL", |text| url(&json(&html(text)))),
        ("base64 in a URL", |text| url(&STANDARD.encode(text))),
        ("hexadecimal in JSON", |text| json(&text.bytes().map(|b| format!("{b:02x}")).collect::<String>())),
    ];
    let first: String = KEY.chars().take(9).collect();
    whole.map(|(name, form)| (name, form(KEY), form(&first).len())).into()
}

#[test]
fn a_secret_that_is_cut_off_is_removed_in_every_form() {
    for (name, whole, least) in forms() {
        // Every end of a short form, and every seventh one of a long form.
        let step = if whole.len() < 300 { 1 } else { 7 };
        for end in (least..=whole.len()).step_by(step).filter(|end| whole.is_char_boundary(*end)) {
            let text = format!("got {}", &whole[..end]);
            let said = secrets().redact_cut(&text).into_owned();
            assert!(said.starts_with("got [secret]") && said.len() < 20, "{name}: {text}: {said}");
            assert_eq!(secrets().redact_cut(&said), said, "{name}");
        }
    }
}

#[test]
fn no_more_than_a_character_of_a_secret_is_shown_while_it_arrives() {
    for (name, whole, least) in forms() {
        let mut text = ArrivingText::default();
        text.push("got ", &secrets());
        for c in whole.chars().take(300) {
            text.push(&c.to_string(), &secrets());
            let end = text.end(&secrets());
            // At most the first escape, while it is not complete. It has a ninth of the characters.
            let more = end.trim_start_matches("got ").trim_start_matches("[secret]");
            assert!(more.len() <= least / 4, "{name}: {end}");
        }
    }
}

#[test]
fn an_end_that_only_looks_like_an_escape_is_kept() {
    let key: Secrets = [Secret::new("sk-0123456789")].iter().collect();
    for text in
        ["50%", "a \\", "this & that &", "sk-0123%", "sk-012345 %", "sk-012345%20", "%zz \\u12 &#xfffffffffffff"]
    {
        assert_eq!(key.redact_cut(text), text);
    }
}

#[test]
fn a_failure_may_end_in_the_middle_of_a_secret() {
    let fault = Fault::new("failed", "it said: sk-Zq7/Wv3+X").with("stderr", "got sk-Zq7%2FWv3%2");
    let fault = secrets().redact_fault(fault);
    assert_eq!((fault.message.as_str(), fault.details["stderr"].as_str()), ("it said: [secret]", Some("got [secret]")));
}

/// The first half is the end of one text, and the second one is the rest of another.
#[test]
fn texts_of_pieces_may_share_them() {
    let (mut a, mut b, mut c) = (format!("a {}", &KEY[..16]), "-".to_owned(), format!("{} c", &KEY[16..]));
    secrets().redact_pieces(&mut [&mut a, &mut b, &mut c], &[vec![0], vec![0, 1, 2], vec![0, 2], vec![1, 7]]);
    assert_eq!((a.as_str(), b.as_str(), c.as_str()), ("a [secret]", "-", " c"));
}
