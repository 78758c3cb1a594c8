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
    for line in text.lines().chain([""]) {
        if line.is_empty() {
            if let Some(data) = data.take() {
                all.push((std::mem::take(&mut name), data));
            }
            name.clear();
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
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

#[cfg(test)]
mod tests {
    use super::events;

    #[test]
    fn a_stream() {
        let text = ": hello\n\ndata: a\ndata: b\n\nevent: end\nid: 4\ndata:c\n\nevent: nothing\n\ndata: [DONE]";
        let found = events(text);
        let found: Vec<_> = found.iter().map(|(n, d)| (n.as_str(), d.as_str())).collect();
        assert_eq!(found, [("", "a\nb"), ("end", "c"), ("", "[DONE]")]);
        assert_eq!(events("data: a\r\n\r\ndata: b\r\n").len(), 2);
        assert_eq!(events("\u{feff}data: a\n\ndata: b").len(), 2);
    }
}
