//! An insertion-ordered set of configurations. Each key takes 8 bytes, and 5 to 10 more in the hash
//! index.

/// The index of a key is its position in the order of insertion.
pub(crate) struct Set {
    keys: Vec<u64>,
    /// Open-addressing table, sized to a power of two: index of the key + 1, or 0 if empty.
    slots: Vec<u32>,
    mask: usize,
}

impl Set {
    pub(crate) fn new() -> Set {
        Set { keys: Vec::new(), slots: vec![0; 1024], mask: 1023 }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    #[inline]
    pub(crate) fn get(&self, number: usize) -> Option<u64> {
        self.keys.get(number).copied()
    }

    /// Finds the slot of a key, or the empty slot for it.
    #[inline]
    fn slot(&self, key: u64) -> usize {
        let mut at = self.home(key);
        loop {
            match self.slots.get(at) {
                Some(0) | None => return at,
                Some(number) => {
                    if self.keys.get((*number as usize).wrapping_sub(1)) == Some(&key) {
                        return at;
                    }
                }
            }
            at = at.wrapping_add(1) & self.mask;
        }
    }

    /// Computes the first slot to try: Fibonacci hashing after folding, so that keys that differ in
    /// only a few bits are spread out.
    #[inline]
    fn home(&self, key: u64) -> usize {
        let mixed = (key ^ (key >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        #[allow(clippy::cast_possible_truncation)] // masked
        let place = (mixed ^ (mixed >> 29)) as usize;
        place & self.mask
    }

    #[inline]
    pub(crate) fn contains(&self, key: u64) -> bool {
        self.slots.get(self.slot(key)).is_some_and(|n| *n != 0)
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.keys.capacity() * 8 + self.slots.capacity() * 4
    }

    /// Inserts a key; returns whether it was new.
    #[inline]
    pub(crate) fn insert(&mut self, key: u64) -> bool {
        let at = self.slot(key);
        if self.slots.get(at).is_some_and(|n| *n != 0) {
            return false;
        }
        push(&mut self.keys, key);
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        }
        // Keep the load factor at or below 3/4.
        if self.keys.len().saturating_mul(4) > self.slots.len().saturating_mul(3) {
            self.grow();
        }
        true
    }

    #[cold]
    fn grow(&mut self) {
        let size = self.slots.len().saturating_mul(2);
        self.slots = Vec::new();
        self.slots = vec![0; size];
        self.mask = size.saturating_sub(1);
        for (key, number) in self.keys.iter().zip(1u32..) {
            let mut at = self.home(*key);
            while self.slots.get(at).is_some_and(|n| *n != 0) {
                at = at.wrapping_add(1) & self.mask;
            }
            if let Some(slot) = self.slots.get_mut(at) {
                *slot = number;
            }
        }
    }
}

/// Appends an item; the list grows by a quarter to waste little memory.
pub(crate) fn push<T>(list: &mut Vec<T>, item: T) {
    if list.len() == list.capacity() {
        list.reserve_exact((list.len() / 4).max(1024));
    }
    list.push(item);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_order_of_insertion() {
        let mut set = Set::new();
        for key in 0..10_000u64 {
            assert!(set.insert(key << 7));
            assert!(!set.insert(key << 7));
        }
        assert_eq!(set.len(), 10_000);
        assert_eq!(set.get(77), Some(77 << 7));
        assert!(set.contains(9_999 << 7) && !set.contains(1));
    }
}
