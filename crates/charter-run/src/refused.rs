//! Finds the timers of a restored run that were refused, in its records.

use charter_journal::{Record, SourceKind, Verdict};
use charter_kernel::{Event, Timestamp};

use crate::run::{PAGE, Run};

/// Maximum number of pages that are searched for the refusals of timers that were due at the same
/// time. A timer that is not found is refused once more.
const MAX_PAGES: usize = 64;

impl Run {
    /// Finds the timers of a restored run that were refused. `read` returns at most that many
    /// records from a sequence number on; records that a host has dropped are left out.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn note_refused<E>(&mut self, mut read: impl FnMut(u64, usize) -> Result<Vec<Record>, E>) -> Result<(), E> {
        // All records after the snapshot: they say which timers it has refused.
        let mut from = self.snapshot().map_or(u64::MAX, |s| s.seq().saturating_add(1));
        while from < self.chain.next_seq() {
            let page = read(from, PAGE)?;
            let Some(last) = page.last() else {
                break;
            };
            from = last.seq.saturating_add(1);
            page.iter().for_each(|record| self.note_refusal(record, true));
        }
        // A timer that was refused for good may have been refused long before. It fires before any
        // later input, so its refusal is among the first records after it was due.
        let mut since = Timestamp::MIN;
        while let Some(due) = self.position.timer().map(|t| t.due).filter(|due| *due <= self.last() && *due > since) {
            since = due;
            let (mut from, mut end) = (0, self.chain.next_seq());
            while from < end {
                let middle = from.midpoint(end);
                match read(middle, 1)?.first() {
                    Some(record) if record.at < due => from = middle.saturating_add(1),
                    _ => end = middle,
                }
            }
            // As many timers may be due at once as the charter has.
            for _ in 0..MAX_PAGES {
                let page = read(from, PAGE)?;
                let Some(last) = page.last() else {
                    break;
                };
                from = last.seq.saturating_add(1);
                page.iter().for_each(|record| self.note_refusal(record, false));
                if self.position.timer().is_none_or(|timer| timer.due > due) {
                    break;
                }
            }
        }
        Ok(())
    }

    fn note_refusal(&mut self, record: &Record, follows: bool) {
        if record.source.kind == SourceKind::Timer
            && record.verdict == Verdict::Refused
            && let Some(code) = record.refusal.as_deref().map(|refusal| refusal.code)
            && let Ok(Event::Timer { timer, generation }) = record.envelope().map(|e| e.event)
        {
            self.position.refuse_timer(&timer, generation, follows, code);
        }
    }
}
