//! The states of a random config: kinds, keys and ids.

use super::Random;

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Atomic,
    Compound,
    Parallel,
    Final,
    Shallow,
    Deep,
}

pub(super) struct State {
    pub(super) key: String,
    /// An explicit id.
    pub(super) id: Option<String>,
    pub(super) kind: Kind,
    pub(super) children: Vec<usize>,
    pub(super) parent: Option<usize>,
    /// Whether it has an invocation with the id that several states use.
    pub(super) shares: bool,
}

pub(super) struct Tree {
    pub(super) states: Vec<State>,
    pub(super) wild: bool,
}

impl Tree {
    pub(super) fn grow(r: &mut Random, wild: bool) -> Tree {
        let kind = if r.chance(15) { Kind::Parallel } else { Kind::Compound };
        let root = State { key: "m".into(), id: None, kind, children: vec![], parent: None, shares: false };
        let mut tree = Tree { states: vec![root], wild };
        let mut next = 0;
        while next < tree.states.len() {
            tree.grow_children(next, r);
            next += 1;
        }
        for at in 1..tree.states.len() {
            let others: Vec<usize> = (1..at).filter(|other| tree.states[*other].shares).collect();
            let free = others.iter().all(|other| tree.exclude(*other, at));
            tree.states[at].shares = wild && !tree.is_history(at) && free && r.chance(20);
        }
        tree
    }

    fn grow_children(&mut self, at: usize, r: &mut Random) {
        let kind = self.states[at].kind;
        if !matches!(kind, Kind::Compound | Kind::Parallel) {
            return;
        }
        let deep = self.depth(at) >= 3 || self.states.len() > 24;
        let count = 2 + r.below(3);
        for n in 0..count {
            let child = match r.below(100) {
                _ if deep => Kind::Atomic,
                0..35 => Kind::Atomic,
                35..65 => Kind::Compound,
                65..80 => Kind::Parallel,
                80..92 if kind == Kind::Compound && n > 0 => Kind::Final,
                92..96 if n > 0 => Kind::Shallow,
                96.. if n > 0 => Kind::Deep,
                _ => Kind::Atomic,
            };
            let number = self.states.len();
            let key = match r.below(100) {
                _ if !self.wild => format!("s{number}"),
                0..6 => format!("s {number}"),
                6..12 => format!("s{number}.x"),
                12..15 => format!("{}", 100 - number),
                15..18 => format!("s{number}*"),
                // The same path as a child `x` of the sibling before it.
                18..21 if n > 0 => format!("s{}.x", number - 1),
                21..25 if self.states[at].children.is_empty() => "x".to_owned(),
                _ => format!("s{number}"),
            };
            let taken = self.states[at].children.iter().any(|c| self.states[*c].key == key);
            let key = if taken { format!("s{number}") } else { key };
            // Two states with the same default id are a documented deviation.
            let ambiguous = key == format!("s{}.x", number - 1);
            let id = (ambiguous || (self.wild && r.chance(8))).then(|| format!("i{}{number}", r.pick(&["", ".", " "])));
            self.states.push(State { key, id, kind: child, children: vec![], parent: Some(at), shares: false });
            self.states[at].children.push(number);
        }
        // JavaScript puts keys that are numbers first, and document order is the order of the keys.
        let states = &self.states;
        let number = |child: &usize| states[*child].key.parse::<usize>().unwrap_or(usize::MAX);
        let mut children = self.states[at].children.clone();
        children.sort_by_key(number);
        self.states[at].children = children;
    }

    pub(super) fn is_history(&self, at: usize) -> bool {
        matches!(self.states[at].kind, Kind::Shallow | Kind::Deep)
    }

    pub(super) fn depth(&self, mut at: usize) -> usize {
        let mut depth = 0;
        while let Some(up) = self.states[at].parent {
            (at, depth) = (up, depth + 1);
        }
        depth
    }

    /// The keys from `from` (exclusive) down to `at`, in XState's notation.
    pub(super) fn path(&self, from: usize, at: usize) -> String {
        let key = self.states[at].key.replace('.', "\\.");
        match self.states[at].parent {
            Some(up) if up != from => format!("{}.{key}", self.path(from, up)),
            _ => key,
        }
    }

    pub(super) fn in_regions(&self, mut at: usize) -> bool {
        while let Some(up) = self.states[at].parent {
            if self.states[up].kind == Kind::Parallel {
                return true;
            }
            at = up;
        }
        false
    }

    /// Finds a state in another region, if `at` is inside a region.
    pub(super) fn beside(&self, mut at: usize) -> Option<usize> {
        if self.is_history(at) {
            return None;
        }
        while let Some(up) = self.states[at].parent {
            if self.states[up].kind == Kind::Parallel {
                let other = |s: &usize| *s != at && !self.is_history(*s);
                let region = self.states[up].children.iter().copied().find(other)?;
                let mut inside = self.states[region].children.iter().copied();
                return inside.rfind(|s| self.states[*s].kind == Kind::Atomic).or(Some(region));
            }
            at = up;
        }
        None
    }

    pub(super) fn has_regions(&self, at: usize) -> bool {
        let parallel = |s: usize| self.states[s].kind == Kind::Parallel;
        (at..self.states.len()).any(|s| parallel(s) && (s == at || self.is_inside(s, at)))
    }

    pub(super) fn is_inside(&self, mut at: usize, of: usize) -> bool {
        while let Some(up) = self.states[at].parent {
            if up == of {
                return true;
            }
            at = up;
        }
        false
    }

    /// Whether the two cannot be active at the same time.
    fn exclude(&self, one: usize, other: usize) -> bool {
        let mut up = one;
        while up != other && !self.is_inside(other, up) {
            up = self.states[up].parent.unwrap_or(0);
        }
        up != one && up != other && self.states[up].kind == Kind::Compound
    }

    /// Picks a later sibling, so that eventless transitions terminate.
    pub(super) fn onward(&self, at: usize, r: &mut Random) -> Option<usize> {
        let parent = self.states[at].parent?;
        let siblings = &self.states[parent].children;
        let later: Vec<usize> = siblings.iter().copied().filter(|s| *s > at && !self.is_history(*s)).collect();
        (!later.is_empty() && self.states[parent].kind == Kind::Compound).then(|| r.pick(&later))
    }
}
