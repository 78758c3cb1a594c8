//! Removes secrets from texts that were cut off, are still arriving, or were sent in pieces.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::encodings::begins;
use crate::layers;
use crate::secret::{MIN_PART, Secrets, without};

/// Maximum number of bytes at the end of a text that may be the beginning of a secret.
const MAX_END: usize = 64 << 10;

/// A place in a piece: where it begins and ends, and whether a secret begins there.
type Place = (usize, usize, bool);

impl Secrets {
    /// Removes the secrets from a text that may have been cut off: also the beginning of a secret
    /// at its end, in every form in which a whole one is found.
    #[must_use]
    pub fn redact_cut<'t>(&self, text: &'t str) -> Cow<'t, str> {
        without(text, self.find_cut(text))
    }

    /// Removes the secrets from a text that is still arriving, and what may be the beginning of one
    /// at its end, however short.
    #[must_use]
    pub(crate) fn redact_arriving(&self, text: &str) -> String {
        let mut shown = self.redact_cut(text).into_owned();
        if let Some(start) = self.begin_at_end(&shown, 1) {
            shown.truncate(start);
        }
        shown
    }

    /// Removes the secrets from texts that belong together: each of `groups` names some of them, by
    /// their index, that are the pieces of one text, in their order. Such a text may have been cut
    /// off.
    pub fn redact_pieces<'g>(&self, texts: &mut [&mut String], groups: impl IntoIterator<Item = &'g Vec<usize>>) {
        let mut places: Vec<Vec<Place>> = vec![Vec::new(); texts.len()];
        for group in groups {
            self.find_in_pieces(texts, group, &mut places);
        }
        for (text, mut places) in texts.iter_mut().zip(places) {
            if places.is_empty() {
                continue;
            }
            places.sort_unstable();
            places.dedup_by(|next, last| {
                let overlap = next.0 < last.1;
                if overlap {
                    (last.1, last.2) = (next.1.max(last.1), next.2 || last.2);
                }
                overlap
            });
            let (mut out, mut from) = (String::new(), 0_usize);
            for (start, end, is_begin) in places {
                out.push_str(text.get(from..start).unwrap_or_default());
                // The text that replaces a secret is in the piece in which the secret begins.
                out.push_str(if is_begin { Self::REDACTED } else { "" });
                from = end;
            }
            out.push_str(text.get(from..).unwrap_or_default());
            **text = out;
        }
    }

    /// Removes also the parts of secrets from a text, if they are as long as the beginning of one
    /// that is found at the end of a text.
    #[must_use]
    pub fn redact_parts(&self, text: &str) -> String {
        let text = self.redact(text);
        let forms: Vec<&str> = self.forms.iter().filter(|form| !form.word).map(|form| &*form.text).collect();
        let known: HashSet<&str> = forms.iter().flat_map(|form| parts(form)).collect();
        let part = |start: usize| {
            let rest = text.get(start..)?;
            let is_part = parts(rest).next().is_some_and(|part| known.contains(part));
            if is_part { forms.iter().filter_map(|form| longest_part(form, rest)).max() } else { None }
        };
        let (mut found, mut from) = (Vec::new(), 0);
        for (start, _) in text.char_indices() {
            if start >= from
                && let Some(length) = part(start)
            {
                from = start.saturating_add(length);
                found.push((start, from));
            }
        }
        without(&text, found).into_owned()
    }

    fn find_in_pieces(&self, texts: &[&mut String], group: &[usize], places: &mut [Vec<Place>]) {
        let pieces = || group.iter().filter_map(|index| Some((*index, texts.get(*index)?)));
        let whole: String = pieces().map(|(_, piece)| piece.as_str()).collect();
        let found = self.find_cut(&whole);
        let mut start = 0_usize;
        for (index, piece) in pieces() {
            let end = start.saturating_add(piece.len());
            let here = found.iter().filter(|(first, last)| *first < end && *last > start);
            let here = here.map(|(first, last)| {
                (first.saturating_sub(start), end.min(*last).saturating_sub(start), *first >= start)
            });
            if let Some(places) = places.get_mut(index) {
                places.extend(here);
            }
            start = end;
        }
    }

    /// Like [`Secrets::find`], with the beginning of a secret at the end of the text.
    fn find_cut(&self, text: &str) -> Vec<(usize, usize)> {
        let mut found = self.find(text);
        if let Some(start) = self.begin_at_end(text, MIN_PART) {
            let start = found.iter().filter(|(_, end)| *end > start).map(|(first, _)| *first).fold(start, usize::min);
            found.retain(|(_, end)| *end <= start);
            found.push((start, text.len()));
        }
        found
    }

    /// Where the end of a text begins that may be the beginning of a secret, with at least `least`
    /// characters of it, in any encoding.
    fn begin_at_end(&self, text: &str, least: usize) -> Option<usize> {
        if self.is_empty() {
            return None;
        }
        let from = text.ceil_char_boundary(text.len().saturating_sub(self.reach().min(MAX_END)));
        let end = text.get(from..).unwrap_or_default();
        let mut first = self.begin_in(end, least);
        layers::visit(end, &mut |decoded, place| {
            let here = self.begin_in(decoded, least).map(place);
            first = first.into_iter().chain(here).min();
        });
        first.map(|at| from.saturating_add(at))
    }

    /// The same in one encoding.
    fn begin_in(&self, text: &str, least: usize) -> Option<usize> {
        // A short secret is found as a word only, and a part of it is none.
        let forms = || self.forms.iter().filter(|form| !form.word || least < MIN_PART);
        let is_begin = |rest: &str| forms().any(|form| begins(&form.text, rest, least));
        text.char_indices().map(|(at, _)| at).find(|at| text.get(*at..).is_some_and(is_begin))
    }
}

/// The parts of a text that are as long as the beginning of a secret has to be.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.char_indices().map(|(at, _)| at);
    let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]).skip(MIN_PART);
    starts.zip(ends).filter_map(|(start, end)| text.get(start..end))
}

/// The length of the longest part of a form that is at the beginning of a text.
fn longest_part(form: &str, text: &str) -> Option<usize> {
    let part = parts(text).next()?;
    let lengths = form.match_indices(part).map(|(at, _)| {
        let form = form.get(at..).unwrap_or_default();
        form.chars().zip(text.chars()).take_while(|(one, other)| one == other).map(|(c, _)| c.len_utf8()).sum()
    });
    lengths.max()
}
