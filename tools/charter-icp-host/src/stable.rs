//! Stable memory: pages allocated on write, and two undo logs (for the current message, and since
//! the checkpoint).

/// Size of a page of the undo log in bytes. Smaller than a WebAssembly page, because most messages
/// write little.
const PAGE: usize = 4096;
/// Size of a WebAssembly page in bytes, the unit of growth.
const WASM_PAGE: u64 = 65_536;
/// Maximum size. The Internet Computer allows 500 GiB, for which the index alone would be large.
const MAX_WASM_PAGES: u64 = 16 * 1024 * 1024 * 1024 / WASM_PAGE;

type Page = Box<[u8; PAGE]>;

/// The data that a rollback needs.
#[derive(Debug, Default)]
struct Undo {
    /// Size in WebAssembly pages.
    size: u64,
    /// The previous contents of pages, each at most once.
    pages: Vec<(usize, Option<Page>)>,
}

/// An access outside the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfBounds;

/// A canister's stable memory.
#[derive(Debug, Default)]
pub(crate) struct Stable {
    pages: Vec<Option<Page>>,
    /// For each page, the message and the checkpoint in which it was last saved.
    saved: Vec<(u64, u64)>,
    size: u64,
    message: u64,
    checkpoint: u64,
    since_message: Undo,
    since_checkpoint: Undo,
}

impl Stable {
    /// The size in WebAssembly pages of 64 KiB.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Grows by `more` zeroed pages; returns the previous size, or `None` if the new one is too
    /// large.
    pub(crate) fn grow(&mut self, more: u64) -> Option<u64> {
        let (before, after) = (self.size, self.size.checked_add(more)?);
        if after > MAX_WASM_PAGES {
            return None;
        }
        self.size = after;
        Some(before)
    }

    fn check(&self, offset: u64, size: usize) -> Result<usize, OutOfBounds> {
        let end = u64::try_from(size).ok().and_then(|size| offset.checked_add(size)).ok_or(OutOfBounds)?;
        if end > self.size.saturating_mul(WASM_PAGE) {
            return Err(OutOfBounds);
        }
        usize::try_from(offset).map_err(|_| OutOfBounds)
    }

    /// Reads from `offset` into `into`.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), OutOfBounds> {
        let offset = self.check(offset, into.len())?;
        for (page, within, part) in pieces(offset, into.len()) {
            let Some(to) = into.get_mut(part.clone()) else {
                continue;
            };
            let end = within.saturating_add(to.len());
            match self.pages.get(page).and_then(Option::as_ref).and_then(|page| page.get(within..end)) {
                Some(from) => to.copy_from_slice(from),
                None => to.fill(0),
            }
        }
        Ok(())
    }

    /// Writes the bytes of `from` at `offset`.
    pub(crate) fn write(&mut self, offset: u64, from: &[u8]) -> Result<(), OutOfBounds> {
        let offset = self.check(offset, from.len())?;
        for (page, within, part) in pieces(offset, from.len()) {
            let Some(from) = from.get(part) else { continue };
            let end = within.saturating_add(from.len());
            if let Some(to) = self.page_for_writing(page).and_then(|page| page.get_mut(within..end)) {
                to.copy_from_slice(from);
            }
        }
        Ok(())
    }

    /// Returns the page, after growing the index if needed.
    fn page_for_writing(&mut self, page: usize) -> Option<&mut Page> {
        if self.pages.len() <= page {
            let length = page.saturating_add(1);
            self.pages.resize_with(length, || None);
            self.saved.resize(length, (0, 0));
        }
        let now = self.message;
        let (slot, saved) = (self.pages.get_mut(page)?, self.saved.get_mut(page)?);
        if saved.0 != now {
            saved.0 = now;
            self.since_message.pages.push((page, slot.clone()));
        }
        Some(slot.get_or_insert_with(|| Box::new([0; PAGE])))
    }

    /// Begins a message, whose changes can be undone.
    pub(crate) fn begin(&mut self) {
        self.message = self.message.saturating_add(1);
        self.since_message.size = self.size;
        self.since_message.pages.clear();
    }

    /// Commits the message; it can still be undone together with all others since the checkpoint.
    pub(crate) fn commit(&mut self) {
        let checkpoint = self.checkpoint;
        for (page, before) in self.since_message.pages.drain(..) {
            if let Some(saved) = self.saved.get_mut(page)
                && saved.1 != checkpoint
            {
                saved.1 = checkpoint;
                self.since_checkpoint.pages.push((page, before));
            }
        }
        self.message = self.message.saturating_add(1);
    }

    /// Undoes the changes of the message.
    pub(crate) fn undo(&mut self) {
        let undo = std::mem::take(&mut self.since_message);
        self.put_back(undo);
        self.message = self.message.saturating_add(1);
    }

    /// Makes the current state the target of [`Stable::rewind`].
    pub(crate) fn checkpoint(&mut self) {
        self.checkpoint = self.checkpoint.saturating_add(1);
        self.since_checkpoint.pages.clear();
        self.since_checkpoint.size = self.size;
    }

    /// Undoes all messages since the checkpoint.
    pub(crate) fn rewind(&mut self) {
        let undo = std::mem::take(&mut self.since_checkpoint);
        self.put_back(undo);
        self.message = self.message.saturating_add(1);
        self.checkpoint();
    }

    fn put_back(&mut self, undo: Undo) {
        self.size = undo.size;
        for (page, before) in undo.pages {
            if let Some(slot) = self.pages.get_mut(page) {
                *slot = before;
            }
        }
    }

    /// Returns a part of the memory, for tests.
    pub(crate) fn bytes(&self, offset: u64, size: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; size];
        self.read(offset, &mut bytes).ok().map(|()| bytes)
    }
}

/// Splits `size` bytes at `offset` by page: page, offset in it, and range of the bytes.
fn pieces(offset: usize, size: usize) -> impl Iterator<Item = (usize, usize, std::ops::Range<usize>)> {
    let mut done = 0_usize;
    std::iter::from_fn(move || {
        if done >= size {
            return None;
        }
        let at = offset.saturating_add(done);
        let (page, within) = (at / PAGE, at % PAGE);
        let length = PAGE.saturating_sub(within).min(size.saturating_sub(done));
        let part = done..done.saturating_add(length);
        done = part.end;
        Some((page, within, part))
    })
}
