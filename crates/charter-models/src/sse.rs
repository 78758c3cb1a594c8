//! Parses server-sent events, in which models stream their answers (WHATWG HTML, "Server-sent
//! events").

/// Returns the events of a stream: name (empty if none) and data of each.
pub(crate) fn events(text: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let (mut name, mut data): (String, Option<String>) = (String::new(), None);
    // A byte order mark is not a part of the first field.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // An empty line ends an event. An event that is not ended when the stream ends is returned as
    // well, because some servers omit the line.
    for line in lines(text).chain([""]) {
        if line.is_empty() {
            if let Some(data) = data.take() {
                all.push((std::mem::take(&mut name), data));
            }
            name.clear();
            continue;
        }
        let (field, value) = field(line);
        match field {
            "event" => value.clone_into(&mut name),
            "data" => match &mut data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => data = Some(value.to_owned()),
            },
            _ => {}
        }
    }
    all
}

/// The lines of a stream, without a byte order mark. Each ends with CR LF, LF or CR.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (line, after) = rest.split_once(['\r', '\n']).unwrap_or((rest, ""));
        let is_return = rest.as_bytes().get(line.len()) == Some(&b'\r');
        rest = if is_return { after.strip_prefix('\n').unwrap_or(after) } else { after };
        Some(line)
    })
}

/// The name and the value of the field in a line. The name of a comment is empty.
fn field(line: &str) -> (&str, &str) {
    let (field, value) = line.split_once(':').unwrap_or((line, ""));
    (field, value.strip_prefix(' ').unwrap_or(value))
}

/// Whether a stream has lines that are in none of its events, such as comments.
pub(crate) fn has_more_than_events(text: &str) -> bool {
    lines(text).any(|line| !line.is_empty() && !["data", "event"].contains(&field(line).0))
}

#[cfg(test)]
mod tests {
    use super::{events, has_more_than_events, lines};

    #[test]
    fn a_stream() {
        let text = ": hello\n\ndata: a\ndata: b\n\nevent: end\nid: 4\ndata:c\n\nevent: nothing\n\ndata: [DONE]";
        assert!(has_more_than_events(text) && !has_more_than_events("data: a\n\nevent: b\ndata\n\n"));
        for end in ["\n", "\r", "\r\n"] {
            let found = events(&format!("\u{feff}{}", text.replace('\n', end)));
            let found: Vec<_> = found.iter().map(|(n, d)| (n.as_str(), d.as_str())).collect();
            assert_eq!(found, [("", "a\nb"), ("end", "c"), ("", "[DONE]")], "{end:?}");
            assert_eq!(events(&format!("data: a{end}{end}data: b{end}")).len(), 2);
        }
        assert_eq!(lines("a\r\n\nb\r\rc\n\r").collect::<Vec<_>>(), ["a", "", "b", "", "c", ""]);
    }
}
