//! What actors are receiving, for the status line. It is never recorded.

use std::collections::BTreeMap;

use charter_actors::CallProgress;

use crate::journal::text::on_one_line;

/// What has arrived, by actor and call.
#[derive(Debug, Default)]
pub(super) struct Arriving(BTreeMap<String, BTreeMap<u32, (u64, String)>>);

impl Arriving {
    /// Keeps the progress of a call.
    pub(super) fn keep(&mut self, progress: &CallProgress) {
        let calls = self.0.entry(progress.src.to_string()).or_default();
        calls.insert(progress.call, (progress.bytes, progress.text.clone()));
    }

    /// Forgets an actor that starts again.
    pub(super) fn forget(&mut self, actor: &str) {
        self.0.remove(actor);
    }

    /// How much has arrived for an actor; nothing if nothing has.
    pub(super) fn amount(&self, actor: &str) -> String {
        let bytes: u64 = self.0.get(actor).into_iter().flatten().map(|(_, (bytes, _))| bytes).sum();
        if bytes == 0 { String::new() } else { format!(" ({}.{} kB)", bytes / 1_000, bytes % 1_000 / 100) }
    }

    /// The end of the text that arrives for an actor, on one line of at most `width` characters:
    /// that of the call that got most.
    pub(super) fn end(&self, actor: &str, width: usize) -> String {
        let calls = self.0.get(actor).into_iter().flatten();
        let text = calls.map(|(_, (_, text))| text).max_by_key(|text| text.len()).map(|text| on_one_line(text));
        let line: Vec<char> = text.unwrap_or_default().chars().collect();
        line.iter().skip(line.len().saturating_sub(width)).collect()
    }
}

#[cfg(test)]
mod tests {
    use charter_actors::CallProgress;

    use super::Arriving;

    #[test]
    fn the_status_line_has_the_amount_and_the_end() {
        let mut all = Arriving::default();
        for (src, call, bytes, text) in [
            ("ask", 0, 10, "a"),
            ("ask", 0, 3_000, "Dear\n  \u{1b}[2Jreader,"),
            ("ask", 1, 500, "b"),
            ("other", 0, 7, "c"),
        ] {
            let (run, effect, src, text) = ("r".into(), "r/1/0".into(), src.into(), text.to_owned());
            all.keep(&CallProgress { run, effect, src, call, bytes, text, note: None });
        }
        assert_eq!((all.amount("ask").as_str(), all.amount("nobody").as_str()), (" (3.5 kB)", ""));
        assert_eq!(all.end("ask", 7), "reader,");
        assert!(!all.end("ask", 100).contains('\u{1b}'), "{}", all.end("ask", 100));
        let (run, effect, text) = ("r".into(), "r/1/0".into(), "10%\r20%\r\n\u{1b}[32mdone\u{1b}[0m\n".to_owned());
        all.keep(&CallProgress { run, effect, src: "load".into(), call: 0, bytes: 9, text, note: None });
        assert_eq!(all.end("load", 70), "10% 20% done");
        all.forget("ask");
        assert_eq!((all.amount("ask"), all.end("ask", 9)), (String::new(), String::new()));
    }
}
