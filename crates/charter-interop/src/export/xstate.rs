//! Exports XState v5 configs. Named guards, actions, actors and delays are exported by name and
//! must be provided with XState's `setup`; inline guards and actions become `charter.guard` and
//! `charter.action` with their definition as parameters.

use charter_kernel::definition::{Action, Delay, Guard, Invoke, State, StateKind, Template, Transition};
use charter_kernel::{Definition, Digest, Machine, Outline};
use rustc_hash::FxHashMap;
use serde_json::{Value as Json, json};

use super::{flat, kind, text};
use charter_format::ordered::{OrderedJson, OrderedObject};
use charter_format::source::{Node, Value};

/// Exports a charter as an XState v5 config in JSON, which [`crate::import::xstate`] imports as the
/// same charter. Roles, unique keys, ledger, interlocks and other machines are written under
/// `meta.charter`: XState does not know them.
///
/// XState has different rules for exiting and entering states (see `docs/xstate.md`) and no
/// authority checks: the requirements of a transition are written under the `meta.charter` of that
/// transition.
#[must_use]
pub fn xstate(machine: &Machine) -> String {
    let definition = machine.definition();
    let outlines = machine.outlines();
    let Some(outline) = outlines.first() else {
        return String::new();
    };
    let writer = XstateWriter {
        definition,
        outline,
        flat: flat(&definition.root.state),
        resolved: outline
            .transitions
            .iter()
            .enumerate()
            .filter_map(|(at, o)| {
                let transition = transition_at(&definition.root.state, o.at)?;
                Some((std::ptr::from_ref(transition), at))
            })
            .collect(),
    };
    let seal = seal(writer.machine());
    let mut config = writer.machine();
    let mut charter = json!({"seal": seal, "definition": text(definition)});
    if let (Some(state), Json::Object(map)) = (beyond(&definition.root.state), &mut charter) {
        map.insert("state".to_owned(), state);
    }
    config.put("meta", json!({"charter": charter}));
    serde_json::to_string_pretty(&OrderedJson::Object(config)).unwrap_or_default()
}

/// Returns the charter embedded in a config, and whether the config is unchanged since its export.
pub(crate) fn embedded(root: &Node) -> Option<(Definition, bool)> {
    let charter = root.get("meta")?.get("charter")?;
    let definition = charter_expr::strict_json::typed(charter.get("definition")?.text()?).ok()?;
    let entries = root.entries().iter().filter(|entry| entry.key.text != "meta");
    let config: OrderedObject = entries.map(|entry| (entry.key.text.clone(), written(&entry.value))).collect();
    let unchanged = charter.get("seal").and_then(Node::text) == Some(seal(config).as_str());
    Some((definition, unchanged))
}

fn seal(config: OrderedObject) -> String {
    let text = serde_json::to_string(&OrderedJson::Object(config)).unwrap_or_default();
    Digest::of_bytes(text.as_bytes()).to_string()
}

/// Converts a node to JSON with its keys in source order.
fn written(node: &Node) -> OrderedJson {
    match &node.value {
        Value::List(items) => OrderedJson::List(items.iter().map(written).collect()),
        Value::Map(entries) => {
            OrderedJson::Object(entries.iter().map(|e| (e.key.text.clone(), written(&e.value))).collect())
        }
        _ => OrderedJson::Json(node.as_written()),
    }
}

/// The descriptors in a charter that together match what `*` matches in XState.
const EVERY: [&str; 4] = ["*", "done.*", "error.*", "after.*"];

struct XstateWriter<'m> {
    definition: &'m Definition,
    outline: &'m Outline<'m>,
    flat: Vec<(&'m State, Vec<&'m str>)>,
    /// The index of each transition in the kernel, by its address in memory.
    resolved: FxHashMap<*const Transition, usize>,
}

impl XstateWriter<'_> {
    fn machine(&self) -> OrderedObject {
        let mut out = OrderedObject::default();
        out.put("id", self.definition.id.as_str());
        if !self.definition.version.is_empty() {
            out.put("version", self.definition.version.as_str());
        }
        let description = self.definition.title.as_deref().or(self.definition.description.as_deref());
        out.put_some("description", description);
        let literal = |template: &Template| match template {
            Template::Literal(json) => json.clone(),
            // The value is computed when a run starts; in XState this would need a function.
            _ => Json::Null,
        };
        out.put_map("context", &self.definition.root.context, |t| OrderedJson::Json(literal(t)));
        out.append(self.state(0));
        out
    }

    /// Returns the absolute target of a state: `#ID.KEY.KEY`.
    fn target(&self, number: u32) -> String {
        let keys = self.flat.get(number as usize).map(|(_, path)| path.as_slice()).unwrap_or_default();
        let keys: String = keys.iter().map(|key| format!(".{}", key.replace('.', "\\."))).collect();
        format!("#{}{keys}", self.definition.id)
    }

    fn state(&self, number: u32) -> OrderedObject {
        let mut out = OrderedObject::default();
        let Some((state, path)) = self.flat.get(number as usize) else {
            return out;
        };
        let Some(outline) = self.outline.states.get(number as usize) else {
            return out;
        };
        match kind(state) {
            StateKind::Parallel => out.put("type", "parallel"),
            StateKind::Final => out.put("type", "final"),
            StateKind::Shallow | StateKind::Deep => {
                out.put("type", "history");
                out.put("history", if state.kind == StateKind::Deep { "deep" } else { "shallow" });
                let targets: Vec<String> = outline.initial.iter().map(|t| self.target(*t)).collect();
                out.put_names("target", &targets);
            }
            StateKind::Atomic | StateKind::Compound => {}
        }
        if number != 0 {
            out.put_some("description", state.description.as_deref());
            let meta = with_charter(&state.meta, beyond(state));
            if !meta.is_null() {
                out.put("meta", meta);
            }
        }
        out.put_names("tags", &state.tags);
        if kind(state) == StateKind::Compound {
            self.initial(state, outline.initial, path.len(), &mut out);
        }
        out.put_list("entry", &state.entry.iter().flatten().collect::<Vec<_>>(), action);
        out.put_list("exit", &state.exit.iter().flatten().collect::<Vec<_>>(), action);
        out.put_list("invoke", &state.invoke, |i| self.invoke(i, number));
        self.listeners(state, number, &mut out);
        if let Some(Template::Literal(json)) = &state.output {
            out.put("output", json.clone());
        }
        if !state.states.is_empty() {
            let mut children = OrderedObject::default();
            let mut child = number.saturating_add(1);
            while child <= outline.last {
                let key = self.flat.get(child as usize).and_then(|(_, path)| path.last());
                children.put(key.copied().unwrap_or_default(), self.state(child));
                let last = self.outline.states.get(child as usize).map_or(child, |s| s.last);
                child = last.saturating_add(1);
            }
            out.put("states", children);
        }
        out
    }

    /// Writes `initial`. In XState the initial state is always a child; nested initial states
    /// follow from their parents.
    fn initial(&self, state: &State, targets: &[u32], depth: usize, out: &mut OrderedObject) {
        let first = targets.first().and_then(|t| self.flat.get(*t as usize)).and_then(|(_, path)| path.get(depth));
        let key = first.copied().unwrap_or_default();
        let actions = state.initial.as_ref().map(|i| i.actions.as_slice()).unwrap_or_default();
        if actions.is_empty() {
            out.put("initial", key);
        } else {
            let mut initial = OrderedObject::default();
            initial.put("target", key);
            initial.put_list("actions", actions, action);
            out.put("initial", initial);
        }
    }

    fn listeners(&self, state: &State, number: u32, out: &mut OrderedObject) {
        let mut on: Vec<(String, Vec<OrderedJson>)> = Vec::new();
        for entry in &state.on {
            let every = EVERY.iter().all(|e| entry.events.iter().any(|o| o == e));
            for event in &entry.events {
                // `*` already matches this event.
                if every && event != "*" && EVERY.contains(&event.as_str()) {
                    continue;
                }
                let list: Vec<OrderedJson> = entry.transitions.iter().map(|t| self.transition(t, number)).collect();
                let event = self.own_event(event);
                match on.iter_mut().find(|(known, _)| *known == event) {
                    Some((_, all)) => all.extend(list),
                    None => on.push((event, list)),
                }
            }
        }
        if !on.is_empty() {
            out.put(
                "on",
                on.into_iter().map(|(event, list)| (event, OrderedJson::List(list))).collect::<OrderedObject>(),
            );
        }
        out.put_list("always", &state.always, |t| self.transition(t, number));
        out.put_list("onDone", &state.on_done, |t| self.transition(t, number));
        if !state.after.is_empty() {
            let mut after = OrderedObject::default();
            for entry in &state.after {
                let key = match &entry.delay {
                    Delay::Ms(ms) => ms.to_string(),
                    Delay::Name(name) => name.clone(),
                    Delay::Cel(_) => entry.key.clone(),
                };
                after.put(
                    &key,
                    OrderedJson::List(entry.transitions.iter().map(|t| self.transition(t, number)).collect()),
                );
            }
            out.put("after", after);
        }
    }

    /// Translates the name of a platform event to XState.
    fn own_event(&self, event: &str) -> String {
        let id = |name: &str| {
            let at = self.flat.iter().position(|(state, _)| state.id.as_deref() == Some(name));
            let path = at.and_then(|at| self.flat.get(at)).map(|(_, path)| path.join("."));
            match path.as_deref().unwrap_or(name) {
                // The root.
                "" => self.definition.id.clone(),
                path => format!("{}.{path}", self.definition.id),
            }
        };
        if let Some(id) = event.strip_prefix("done.invoke.") {
            return format!("xstate.done.actor.{id}");
        }
        if let Some(id) = event.strip_prefix("error.invoke.") {
            return format!("xstate.error.actor.{id}");
        }
        if let Some(name) = event.strip_prefix("done.state.") {
            return format!("xstate.done.state.{}", if name == "*" { "*".to_owned() } else { id(name) });
        }
        if let Some((delay, name)) = event.strip_prefix("after.").and_then(|rest| rest.split_once('.')) {
            return format!("xstate.after.{delay}.{}", id(name));
        }
        match event {
            "done.*" | "error.*" | "after.*" => format!("xstate.{event}"),
            other => other.to_owned(),
        }
    }

    fn invoke(&self, invoke: &Invoke, source: u32) -> OrderedJson {
        let mut out = OrderedObject::default();
        out.put("src", invoke.src.as_str());
        out.put("id", invoke.id.as_deref().unwrap_or(&invoke.src));
        let mut rest =
            Invoke { src: String::new(), id: None, on_done: Vec::new(), on_error: Vec::new(), ..invoke.clone() };
        if let Some(Template::Literal(json)) = &invoke.input {
            out.put("input", json.clone());
            rest.input = None;
        }
        if let Ok(Json::Object(mut rest)) = serde_json::to_value(&rest) {
            rest.remove("src");
            if !rest.is_empty() {
                out.put("meta", json!({"charter": rest}));
            }
        }
        out.put_list("onDone", &invoke.on_done, |t| self.transition(t, source));
        out.put_list("onError", &invoke.on_error, |t| self.transition(t, source));
        out.into()
    }

    fn transition(&self, t: &Transition, source: u32) -> OrderedJson {
        let mut out = OrderedObject::default();
        let resolved = self.resolved.get(&std::ptr::from_ref(t)).and_then(|at| self.outline.transitions.get(*at));
        let numbers = resolved.map(|o| o.targets).unwrap_or_default();
        let targets: Vec<String> = numbers.iter().map(|t| self.target(*t)).collect();
        out.put_names("target", &targets);
        match (&t.guard, &t.when) {
            (None, None) => {}
            (Some(Guard::Name(name)), None) => out.put("guard", name.as_str()),
            (guard, when) => {
                let mut params = serde_json::Map::new();
                params
                    .extend(guard.as_ref().map(|g| ("guard".to_owned(), serde_json::to_value(g).unwrap_or_default())));
                params.extend(when.as_ref().map(|w| ("when".to_owned(), Json::from(w.as_str()))));
                out.put("guard", json!({"type": "charter.guard", "params": params}));
            }
        }
        out.put_list("actions", &t.actions, action);
        // If all targets are inside the source, XState does not exit the source; in SCXML this
        // applies only if the source is compound.
        let last = self.outline.states.get(source as usize).map_or(source, |s| s.last);
        let inside = !numbers.is_empty() && numbers.iter().all(|n| (source..=last).contains(n));
        let leaves = resolved.and_then(|o| o.domain).is_some_and(|domain| domain != source);
        if t.reenter || (inside && leaves && !t.parallel_domain) {
            out.put("reenter", true);
        }
        out.put_some("description", t.description.as_deref());
        let meta = meta(t);
        if !meta.is_null() {
            out.put("meta", meta);
        }
        out.into()
    }
}

/// Writes the name of an action, or its definition as parameters.
fn action(action: &(impl std::borrow::Borrow<Action> + ?Sized)) -> OrderedJson {
    match action.borrow() {
        Action::Name(name) => name.as_str().into(),
        other => json!({"type": "charter.action", "params": serde_json::to_value(other).unwrap_or_default()}).into(),
    }
}

/// Builds the `meta` of a transition, with the requirements that XState cannot express.
fn meta(t: &Transition) -> Json {
    let mut charter = serde_json::Map::new();
    let mut put = |key: &str, value: Json, empty: bool| {
        if !empty {
            charter.insert(key.to_owned(), value);
        }
    };
    put("by", json!(t.by), t.by.is_empty());
    put("approves", json!(t.approves), t.approves.is_none());
    put("requires", json!(t.requires), t.requires.is_empty());
    put("quorum", json!(t.quorum), t.quorum.is_none());
    put("not_by", json!(t.not_by), t.not_by.is_none());
    put("agents", json!(t.agents), !t.agents);
    put("refuse", json!(t.refuse), t.refuse.is_none());
    with_charter(&t.meta, (!charter.is_empty()).then(|| charter.into()))
}

/// Adds the part that XState cannot express to the `meta` of a state or transition.
fn with_charter(meta: &Json, charter: Option<Json>) -> Json {
    let Some(charter) = charter else {
        return meta.clone();
    };
    let mut meta = meta.as_object().cloned().unwrap_or_default();
    meta.insert("charter".to_owned(), charter);
    meta.into()
}

/// Returns the parts of a state that XState cannot express: a computed output, computed delays, and
/// variables that are bound late.
fn beyond(state: &State) -> Option<Json> {
    let mut parts = serde_json::Map::new();
    if let Some(output) = state.output.as_ref().filter(|output| !matches!(output, Template::Literal(_))) {
        parts.insert("output".to_owned(), json!(output));
    }
    let computed = state.after.iter().filter(|after| matches!(after.delay, Delay::Cel(_)));
    let delays: serde_json::Map<String, Json> = computed.map(|after| (after.key.clone(), json!(after.delay))).collect();
    if !delays.is_empty() {
        parts.insert("after".to_owned(), delays.into());
    }
    if !state.data.is_empty() {
        // As text, because the order of the variables counts.
        parts.insert("data".to_owned(), serde_json::to_string(&state.data).unwrap_or_default().into());
    }
    (!parts.is_empty()).then(|| parts.into())
}

/// Finds the transition at an address in the definition.
fn transition_at<'d>(root: &'d State, at: &str) -> Option<&'d Transition> {
    let mut state = root;
    let parts: Vec<String> = charter_expr::pointer::keys(at).skip(2).map(Into::into).collect();
    let mut rest = parts.as_slice();
    while let [states, key, tail @ ..] = rest {
        if states != "states" {
            break;
        }
        (state, rest) = (state.states.get(key)?, tail);
    }
    let index = |text: &String| text.parse::<usize>().ok();
    match rest {
        [on, i, _, k] if on == "on" => index(i).zip(index(k)).and_then(|(i, k)| state.on.get(i)?.transitions.get(k)),
        [after, i, _, k] if after == "after" => {
            index(i).zip(index(k)).and_then(|(i, k)| state.after.get(i)?.transitions.get(k))
        }
        [invoke, i, list, k] if invoke == "invoke" => index(i).zip(index(k)).and_then(|(i, k)| {
            let invoke = state.invoke.get(i)?;
            if list == "on_done" { invoke.on_done.get(k) } else { invoke.on_error.get(k) }
        }),
        [list, k] => index(k).and_then(|k| if list == "always" { state.always.get(k) } else { state.on_done.get(k) }),
        _ => None,
    }
}
