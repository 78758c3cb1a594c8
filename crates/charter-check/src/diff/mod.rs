//! Compares two versions of a charter: what may happen now that could not before, and the other way
//! round. Everything that decides about behavior is compared part by part; an event list that the
//! kernel replays in both versions shows a change where the exploration finds one.

mod examples;
mod parts;
mod transitions;
mod words;

use std::collections::BTreeMap;

use charter_format::Document;
use charter_kernel::definition::PropertyRule;
use charter_kernel::{Definition, Machine};
use serde::Serialize;
use serde_json::Value as Json;

use crate::effort::{Effort, fuel};
use crate::explore::{Exploration, condition_of};
use crate::finding::{Report, Verdict};
use crate::model::Model;
use crate::{Options, Trace};

/// One of the two versions.
#[derive(Clone, Copy)]
pub struct Version<'v> {
    /// The charter with its source positions.
    pub document: &'v Document,
    /// The machine, compiled from the definition of the document.
    pub machine: &'v Machine,
}

/// What a change does to the events that are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeEffect {
    /// Something may happen now that could not before.
    Allows,
    /// Something could happen before that cannot now.
    Forbids,
    /// Something happens differently, or both of the above.
    Alters,
}

/// A difference between two versions of a charter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// What it does to the events that are accepted, as far as this part alone decides.
    pub effect: ChangeEffect,
    /// The kind of the part: `role`, `event`, `transition`, `timer`, ...
    pub part: &'static str,
    /// Its name.
    pub name: String,
    /// The key of the part that differs; none if the whole part was added or removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<&'static str>,
    /// The old value; none if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Json>,
    /// The new value; none if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Json>,
    /// JSON pointers into the core form of the old and of the new version.
    pub at: (Option<String>, Option<String>),
    /// The events that show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<Example>,
}

/// The shortest list of events that was found for a change. The versions differ at the last event.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Example {
    /// The start of the run and the events, in the form that `charter step` accepts.
    pub events: Vec<Json>,
    /// What the old version does with the last event.
    pub old: String,
    /// What the new version does with it.
    pub new: String,
}

impl Example {
    fn new(trace: Trace, old: String, new: String) -> Example {
        Example { events: std::iter::once(trace.start).chain(trace.events).collect(), old, new }
    }
}

/// A property that was added or removed, or whose condition or verdict differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PropertyChange {
    /// Its id.
    pub id: String,
    /// The old condition, with its kind, and its verdict.
    pub old: Option<(String, Option<Verdict>)>,
    /// The new ones.
    pub new: Option<(String, Option<Verdict>)>,
}

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Diff {
    /// Whether the two versions behave the same: everything but words and properties is equal.
    pub same: bool,
    /// The differences.
    pub changes: Vec<Change>,
    /// Pairs of states with a transition from one to the other, only in the new version.
    pub ways_added: Vec<String>,
    /// Such pairs that are only in the old version.
    pub ways_removed: Vec<String>,
    /// The properties that differ.
    pub properties: Vec<PropertyChange>,
}

/// A version, prepared for the comparison.
struct Side<'s> {
    definition: &'s Definition,
    model: Model<'s>,
}

/// Compares two versions of a charter. Without `options.explore`, changes have no examples and
/// properties no verdicts.
#[must_use]
pub fn diff(old: Version<'_>, new: Version<'_>, options: &Options) -> Diff {
    let side = |v: &Version<'_>| words::removed(&v.document.definition);
    let (plain_old, plain_new) = (side(&old), side(&new));
    let same = words::canonical(&plain_old) == words::canonical(&plain_new);
    let (a, b) = (
        Side { definition: &plain_old, model: Model::new(&plain_old, old.machine) },
        Side { definition: &plain_new, model: Model::new(&plain_new, new.machine) },
    );
    let mut changes = Vec::new();
    if !same {
        parts::compare(&a, &b, &mut changes);
        transitions::compare(&a, &b, &mut changes);
        if changes.is_empty() {
            // Parts that differ in nothing that has a name here, such as their order.
            changes.push(Change {
                effect: ChangeEffect::Alters,
                part: "charter",
                name: plain_new.id.clone(),
                key: Some("order"),
                before: None,
                after: None,
                at: (None, None),
                example: None,
            });
        }
    }
    let explored = options.explore.then(|| [explored(&old, options), explored(&new, options)]);
    if let Some([(_, before), (_, after)]) = &explored {
        let effort = Effort::new(fuel(options.effort));
        examples::add(&a, &b, before, after, &effort, &mut changes);
    }
    changes.sort_by_key(|c| c.effect);
    let (was, is) = (transitions::ways(&a), transitions::ways(&b));
    let reports = explored.as_ref().map(|[(before, _), (after, _)]| (before, after));
    Diff {
        same,
        changes,
        ways_added: is.difference(&was).cloned().collect(),
        ways_removed: was.difference(&is).cloned().collect(),
        properties: properties(&old, &new, reports),
    }
}

fn explored(version: &Version<'_>, options: &Options) -> (Report, Exploration) {
    let model = Model::new(&version.document.definition, version.machine);
    let mut findings = Vec::new();
    let exploration = crate::explored_findings(&model, Some(version.document), options, &mut findings);
    (Report { findings, explored: exploration.explored().clone() }, exploration)
}

fn properties(old: &Version<'_>, new: &Version<'_>, reports: Option<(&Report, &Report)>) -> Vec<PropertyChange> {
    let of = |version: &Version<'_>, report: Option<&Report>| -> BTreeMap<String, (String, Option<Verdict>)> {
        let all = version.document.definition.properties.iter().enumerate();
        all.map(|(i, property)| {
            let (kind, before) = match &property.rule {
                PropertyRule::Never { unless_before, .. } => ("never", unless_before.as_deref()),
                PropertyRule::Always(_) => ("always", None),
                PropertyRule::Eventually(_) => ("eventually", None),
            };
            let before = before.map(|event| format!(", unless-before: {event}")).unwrap_or_default();
            let at = format!("/properties/{i}");
            let finding = report.and_then(|r| r.findings.iter().find(|f| f.at == at && f.verdict.is_some()));
            let rule = format!("{kind}: {}{before}", condition_of(property));
            (property.id.clone(), (rule, finding.and_then(|f| f.verdict)))
        })
        .collect()
    };
    let (was, is) = (of(old, reports.map(|r| r.0)), of(new, reports.map(|r| r.1)));
    let ids = was.keys().chain(is.keys().filter(|id| !was.contains_key(*id)));
    ids.filter(|id| was.get(*id) != is.get(*id))
        .map(|id| PropertyChange { id: id.clone(), old: was.get(id).cloned(), new: is.get(id).cloned() })
        .collect()
}
