//! Writes a random config. Deviations that `docs/xstate.md` names are avoided here, each with the
//! reason.

use serde_json::json;

use super::tree::{Kind, Tree};
use super::{NAMES, NOTES, Random, SPECIAL};

/// The events of states with regions, by depth. The states inside do not use them, because there is
/// a documented deviation: whether an ancestor handles an event that only some regions handle.
const OUTER: [&str; 4] = ["P0", "P1", "P2", "P3"];
const DESCRIPTORS: [&str; 9] = ["E", "F", "G.x", "G.*", "G.x.*", "H", "*", "E", "A B"];

fn text(text: &str) -> String {
    json!(text).to_string()
}

/// Writes a list, or its only item.
fn list(items: &[String], r: &mut Random) -> String {
    match items {
        [one] if r.chance(50) => one.clone(),
        items => format!("[{}]", items.join(",")),
    }
}

impl Tree {
    pub(super) fn config(&self, r: &mut Random) -> String {
        self.state(0, r)
    }

    fn actions(&self, r: &mut Random) -> String {
        let mut names: Vec<String> = (0..r.below(3)).map(|_| text(r.pick(&NAMES))).collect();
        if r.chance(8) {
            names.push(text(r.pick(&SPECIAL).0));
        }
        if self.wild && r.chance(15) {
            names.push(text(r.pick(&NOTES)));
        }
        if self.wild && r.chance(5) {
            names.push(json!({"type": "say", "params": {"text": r.pick(&["x", "y"])}}).to_string());
        }
        if self.wild { list(&names, r) } else { format!("[{}]", names.join(",")) }
    }

    fn notes(&self, r: &mut Random) -> String {
        let names: Vec<String> = (0..r.below(2)).map(|_| text(r.pick(&NOTES))).collect();
        list(&names, r)
    }

    fn guard(&self, r: &mut Random, depth: usize) -> String {
        match r.below(10) {
            _ if !self.wild => text(r.pick(&["no", "yes"])),
            0 if depth < 3 => format!("{{\"type\":\"not\",\"guard\":{}}}", self.guard(r, depth + 1)),
            1 if depth < 3 => {
                format!("{{\"type\":\"and\",\"guards\":[{},{}]}}", self.guard(r, depth + 1), self.guard(r, depth + 1))
            }
            2 if depth < 3 => {
                format!("{{\"type\":\"or\",\"guards\":[{},{}]}}", self.guard(r, depth + 1), self.guard(r, depth + 1))
            }
            3 => {
                let at = 1 + r.below(self.states.len() - 1);
                let path = self.path(0, at);
                let value = match &self.states[at].id {
                    Some(id) if r.chance(50) => format!("#{}", id.replace('.', "\\.")),
                    // In XState, keys with dots match other states: a documented deviation.
                    _ if self.states.iter().any(|s| s.key.contains('.')) => "nowhere".to_owned(),
                    _ => path,
                };
                json!({"type": "stateIn", "stateValue": value}).to_string()
            }
            4 => json!({"type": "is", "params": {"value": r.chance(50)}}).to_string(),
            _ => text(r.pick(&["no", "yes"])),
        }
    }

    /// Writes a target in one of its forms.
    fn target(&self, at: usize, to: usize, r: &mut Random) -> String {
        if self.wild && r.chance(50) {
            if self.is_inside(to, at) {
                return text(&format!(".{}", self.path(at, to)));
            }
            if let Some(up) = self.states[at].parent.filter(|up| self.is_inside(to, *up)) {
                return text(&self.path(up, to));
            }
        }
        if let Some(id) = &self.states[to].id {
            return text(&format!("#{}", id.replace('.', "\\.")));
        }
        text(&format!("#m.{}", self.path(0, to)))
    }

    fn transition(&self, at: usize, r: &mut Random) -> String {
        let leaf = matches!(self.states[at].kind, Kind::Atomic);
        // Transitions inside regions always have a target: whether ancestors also handle the event
        // of a transition without a target is a documented deviation.
        let regions = self.in_regions(at);
        let mut parts = vec![format!("\"actions\":{}", self.actions(r))];
        if !(leaf && !regions && r.chance(15)) {
            let mut to = 1 + r.below(self.states.len() - 1);
            // Entering a history state from inside its parent is a documented deviation.
            let looks_in = |to: usize| {
                let of = self.states[to].parent.filter(|_| self.is_history(to));
                of.is_some_and(|of| of == at || self.is_inside(at, of))
            };
            let mut tries = 0;
            while looks_in(to) || (regions && leaf && to == at) {
                to = 1 + r.below(self.states.len() - 1);
                tries += 1;
                if tries > 50 {
                    return "{\"guard\":\"no\"}".into();
                }
            }
            let mut targets = vec![to];
            // The transition enters several regions at once.
            if let Some(beside) = self.beside(to).filter(|_| r.chance(30)) {
                targets.push(beside);
            }
            let targets: Vec<String> = targets.iter().map(|to| self.target(at, *to, r)).collect();
            let target = format!("[{}]", targets.join(","));
            let target = if self.wild { list(&targets, r) } else { target };
            if self.wild && target.starts_with('"') && r.chance(10) {
                return target;
            }
            parts.push(format!("\"target\":{target}"));
            // A transition of the root with `reenter` is a documented deviation.
            if r.chance(25) && self.states[at].parent.is_some() {
                parts.push("\"reenter\":true".into());
            }
        }
        if r.chance(20) {
            parts.push(format!("\"guard\":{}", self.guard(r, 0)));
        }
        format!("{{{}}}", parts.join(","))
    }

    fn history(&self, at: usize, r: &mut Random) -> String {
        let deep = self.states[at].kind == Kind::Deep;
        let mut parts: Vec<String> = self.states[at].id.iter().map(|id| format!("\"id\":{}", text(id))).collect();
        let kind = match (deep, r.below(3)) {
            (true, _) => "\"deep\"",
            (false, 0) if self.wild => "true",
            _ => "\"shallow\"",
        };
        if self.wild && !deep && r.chance(20) {
            parts.push("\"type\":\"history\"".into());
            return format!("{{{}}}", parts.join(","));
        }
        if !self.wild || r.chance(50) {
            parts.push("\"type\":\"history\"".into());
        }
        parts.push(format!("\"history\":{kind}"));
        let parent = self.states[at].parent.unwrap();
        let inside: Vec<usize> =
            (1..self.states.len()).filter(|s| self.is_inside(*s, parent) && !self.is_history(*s)).collect();
        if self.wild && r.chance(40) {
            parts.push(format!("\"target\":{}", text(&self.path(parent, r.pick(&inside)))));
        }
        format!("{{{}}}", parts.join(","))
    }

    fn initial(&self, at: usize, r: &mut Random) -> String {
        let able: Vec<usize> = self.states[at].children.iter().copied().filter(|c| !self.is_history(*c)).collect();
        let key = text(&self.states[r.pick(&able)].key);
        // Initial actions do not run in XState if a state is entered beside a target in another
        // region, or from a history: documented deviations.
        let recalls = |of: usize| self.states[of].children.iter().any(|c| self.is_history(*c));
        let restored = (0..at).any(|of| self.is_inside(at, of) && recalls(of));
        let entered = !restored && self.states[at].parent.is_none_or(|up| self.states[up].kind == Kind::Compound);
        match self.wild && entered && r.chance(25) {
            // The order of a delayed event of these actions and `after` is a documented deviation.
            true => format!(
                "\"initial\":{{\"target\":{key},\"actions\":{}}}",
                self.actions(r).replace("\"later\"", "\"tell\"")
            ),
            false => format!("\"initial\":{key}"),
        }
    }

    fn state(&self, at: usize, r: &mut Random) -> String {
        let state = &self.states[at];
        if self.is_history(at) {
            return self.history(at, r);
        }
        let mut parts: Vec<String> = Vec::new();
        if at == 0 {
            parts.push("\"id\":\"m\",\"context\":{\"log\":\"\"}".into());
            if self.wild && r.chance(30) {
                parts.push("\"output\":{\"of\":\"root\"}".into());
            }
        }
        parts.extend(state.id.iter().map(|id| format!("\"id\":{}", text(id))));
        match state.kind {
            Kind::Final => parts.push(format!("\"type\":\"final\",\"output\":\"o{at}\"")),
            Kind::Parallel => parts.push("\"type\":\"parallel\"".into()),
            Kind::Compound => parts.push(self.initial(at, r)),
            _ => {}
        }
        parts.push(format!("\"entry\":{},\"exit\":{}", self.actions(r), self.actions(r)));
        if state.kind != Kind::Final {
            self.listeners(at, r, &mut parts);
        }
        if !state.children.is_empty() {
            let child = |c: &usize, r: &mut Random| format!("{}:{}", text(&self.states[*c].key), self.state(*c, r));
            let children: Vec<String> = state.children.iter().map(|c| child(c, r)).collect();
            parts.push(format!("\"states\":{{{}}}", children.join(",")));
        }
        format!("{{{}}}", parts.join(","))
    }

    fn listeners(&self, at: usize, r: &mut Random, parts: &mut Vec<String>) {
        let mut on: Vec<(&str, String)> = Vec::new();
        for _ in 0..r.below(4) {
            let outer = OUTER[self.depth(at).min(3)];
            let event = if self.has_regions(at) { outer } else { r.pick(&DESCRIPTORS) };
            if (event == "*" && self.in_regions(at)) || (event == "A B" && !self.wild) {
                continue;
            }
            if on.iter().all(|(e, _)| *e != event) {
                let transitions: Vec<String> = (0..1 + r.below(2)).map(|_| self.transition(at, r)).collect();
                let transitions =
                    if self.wild { list(&transitions, r) } else { format!("[{}]", transitions.join(",")) };
                on.push((event, transitions));
            }
        }
        let on: Vec<String> = on.into_iter().map(|(e, t)| format!("{}:{t}", text(e))).collect();
        parts.push(format!("\"on\":{{{}}}", on.join(",")));
        let can_be_done = self.states[at].kind != Kind::Atomic || r.chance(5);
        if let Some(to) = self.onward(at, r).filter(|_| can_be_done && r.chance(50)) {
            let to = self.target_of_sibling(to);
            parts.push(format!("\"onDone\":{{\"target\":{to},\"actions\":{}}}", self.actions(r)));
        }
        self.always(at, r, parts);
        if (at > 0 && r.chance(20)) || self.states[at].shares {
            let id = match self.states[at].shares {
                true => "\"id\":\"shared\",".to_owned(),
                false if r.chance(50) => format!("\"id\":\"w{at}\","),
                false => String::new(),
            };
            parts.push(format!(
                "\"invoke\":{{\"src\":\"work\",{id}\"onDone\":{},\"onError\":{}}}",
                self.transition(at, r),
                self.transition(at, r)
            ));
        }
        if at > 0 && r.chance(25) {
            let first = if self.wild { r.pick(&["5", "soon"]) } else { "5" };
            parts.push(format!(
                "\"after\":{{\"{first}\":{},\"10\":{}}}",
                self.transition(at, r),
                self.transition(at, r)
            ));
        }
    }

    fn target_of_sibling(&self, to: usize) -> String {
        text(&self.states[to].key.replace('.', "\\."))
    }

    fn always(&self, at: usize, r: &mut Random, parts: &mut Vec<String>) {
        // In regions, the order of eventless transitions that stay enabled is a documented
        // deviation.
        let alone = !self.in_regions(at) && !self.has_regions(at);
        let rests = self.wild && alone && r.chance(15);
        let onward = self.onward(at, r).filter(|_| r.chance(12));
        let mut transitions = Vec::new();
        if rests {
            // An eventless transition that changes nothing.
            let guard = if r.chance(50) { format!(",\"guard\":{}", self.guard(r, 0)) } else { String::new() };
            let target = match r.below(4) {
                0 if at > 0 => format!(",\"target\":{},\"reenter\":{}", self.target(at, at, r), r.chance(50)),
                _ => String::new(),
            };
            transitions.push(format!("{{\"actions\":{}{target}{guard}}}", self.notes(r)));
        }
        if let Some(to) = onward {
            let to = self.target_of_sibling(to);
            transitions.push(format!("{{\"guard\":\"no\",\"target\":{to}}}"));
            transitions.push(format!("{{\"target\":{to},\"actions\":{}}}", self.actions(r)));
        }
        if !transitions.is_empty() {
            parts.push(format!("\"always\":[{}]", transitions.join(",")));
        }
    }
}
