//! Compiles invocations: the machine or service, its input and its id.

use rustc_hash::FxHashMap;

use super::scheme::Scheme;
use super::{Compiler, escape};
use crate::definition::{self, StateKind};
use crate::machine::{Chart, Invoke, NONE, Src, StateId};

impl<'d> Compiler<'d> {
    pub(super) fn invoke(&mut self, scheme: &mut Scheme<'d>, def: &'d definition::Invoke, at: &str) -> Option<Invoke> {
        let src = self.src(&def.src, &format!("{at}/src"))?;
        self.whole_events |= def.autoforward;
        let id_location = match &def.id_location {
            Some(name) => self.slot_of(scheme, name, &format!("{at}/id_location")),
            None => None,
        };
        let choose = match &def.choose {
            Some(choose) => {
                let at = format!("{at}/choose");
                let machines = choose.machines.iter().filter_map(|(text, name)| {
                    Some((text.clone().into_boxed_str(), self.src(name, &format!("{at}/machines/{}", escape(text)))?))
                });
                let machines = machines.collect();
                Some((self.cel(&choose.value, &format!("{at}/value"), &[])?, machines))
            }
            None => None,
        };
        Some(Invoke {
            id: def.id.as_deref().unwrap_or(&def.src).into(),
            src,
            choose,
            input: def.input.as_ref().map(|t| self.template(t, &format!("{at}/input"), &[])),
            timeout: def.timeout.as_ref().and_then(|d| self.delay(d, &format!("{at}/timeout"), &[])),
            id_location,
            finalize: self.block(scheme, &def.finalize, &format!("{at}/finalize"), &mut Vec::new()),
            autoforward: def.autoforward,
        })
    }

    pub(super) fn src(&mut self, name: &str, at: &str) -> Option<Src> {
        if let Some(chart) = self.chart_ids.get(name) {
            return Some(Src::Chart(*chart));
        }
        if let Some(service) = self.service_ids.get(name) {
            return Some(Src::Service(*service));
        }
        let known: Vec<&str> = self.chart_ids.keys().chain(self.service_ids.keys()).copied().collect();
        let help = self
            .did_you_mean(name, known.iter().copied())
            .unwrap_or_else(|| "declare it under `actors` or `machines`".to_string());
        self.problem("unknown-actor", at, format!("no actor or machine named `{name}`"), Some(help));
        None
    }

    /// Reports invocations that can be active at the same time but share an id, because an answer
    /// would be ambiguous.
    pub(super) fn invocation_ids(&mut self, scheme: &Scheme<'d>, chart: &Chart) {
        let mut users: FxHashMap<&str, Vec<(StateId, u32)>> = FxHashMap::default();
        for (node, id) in chart.states.iter().zip(0u32..) {
            for (place, invoke) in node.invokes.iter().zip(0u32..) {
                if let Some(invoke_def) = chart.invokes.get(*place as usize) {
                    users.entry(&invoke_def.id).or_default().push((id, invoke));
                }
            }
        }
        let mut clashes = Vec::new();
        for (name, places) in &users {
            for (i, (a, _)) in places.iter().enumerate().take(50) {
                for (b, k) in places.iter().skip(i.saturating_add(1)).take(50) {
                    let mut up = *a;
                    while up != NONE && up != *b && !scheme.inside(*b, up) {
                        up = scheme.parent(up);
                    }
                    let nested = up == *a || up == *b;
                    if nested || (up != NONE && scheme.kind(up) == StateKind::Parallel) {
                        clashes.push((*b, *k, (*name).to_string()));
                    }
                }
            }
        }
        clashes.sort();
        clashes.dedup();
        for (state, place, name) in clashes {
            let at = scheme.get(state).map(|f| format!("{}/invoke/{place}", f.at)).unwrap_or_default();
            let help = Some("give one of them another `id`".to_string());
            self.problem(
                "duplicate-invocation",
                &at,
                format!("two invocations with the id `{name}` can be active at once"),
                help,
            );
        }
    }
}
