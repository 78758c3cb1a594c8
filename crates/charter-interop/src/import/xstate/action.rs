//! Reads actions: names with or without parameters. Guards and actions read their parameters as
//! `params`.

use charter_kernel::definition::{Action, Block, Delay, Template};

use super::XstateReader;
use charter_format::codes;
use charter_format::source::{Node, Value};

impl XstateReader<'_> {
    /// Reads an action or a list of actions.
    pub(super) fn actions(&mut self, node: &Node) -> Block {
        node.one_or_many().iter().filter_map(|item| self.action(item)).collect()
    }

    fn action(&mut self, node: &Node) -> Option<Action> {
        if let Some(name) = node.text() {
            let declared = self.declared("action", name, node.span);
            self.reads_params("action", name, false);
            return declared.then(|| Action::Name(name.to_owned()));
        }
        let kind = match (&node.value, node.get("type").and_then(Node::text)) {
            (Value::Map(_), Some(kind)) => kind,
            _ => {
                let help = "declare an action under `actions` of the charter, and write its name here";
                self.unnamed(node, "an action", "a name or an object with `type`", help);
                return None;
            }
        };
        let params = node.get("params").map(Node::json).filter(|p| !p.is_null());
        if kind == "charter.action" {
            let action = params.and_then(|p| serde_json::from_value(p).ok());
            if action.is_none() {
                self.refuse(codes::VALUE, node.span, "invalid charter action", None);
            }
            return action;
        }
        if let Some(own) = kind.strip_prefix("xstate.").filter(|_| !self.definition.actions.contains_key(kind)) {
            let help = format!("declare it as an action of the charter (`{own}: ...`), and write its name here");
            self.refuse(
                codes::NOT_SUPPORTED,
                node.span,
                format!("`{kind}` contains functions, which JSON cannot hold"),
                Some(&help),
            );
            return None;
        }
        if !self.declared("action", kind, node.span) {
            return None;
        }
        let reads = self.reads_params("action", kind, params.is_some());
        let Some(params) = params.filter(|_| reads) else {
            return Some(Action::Name(kind.to_owned()));
        };
        let name = format!("{kind}({params})");
        if !self.definition.actions.contains_key(&name)
            && let Some(mut block) = self.definition.actions.get(kind).cloned()
        {
            block_with_params(&mut block, &params.to_string());
            self.definition.actions.insert(name.clone(), block);
        }
        Some(Action::Name(name))
    }
}

/// Binds `params` in an expression; JSON is valid CEL.
pub(super) fn with_params(cel: &str, params: &str) -> String {
    format!("cel.bind(params, {params}, {cel})")
}

fn block_with_params(block: &mut Block, params: &str) {
    let mut blocks: Vec<&mut Block> = vec![block];
    while let Some(block) = blocks.pop() {
        for action in block {
            match action {
                Action::Assign(places) => places.values_mut().for_each(|t| template(t, params)),
                Action::Raise { r#type, data } | Action::Emit { r#type, data } => {
                    template(r#type, params);
                    data.iter_mut().for_each(|t| template(t, params));
                }
                Action::Send(send) => {
                    template(&mut send.r#type, params);
                    let parts = [&mut send.to, &mut send.data, &mut send.id, &mut send.processor];
                    parts.into_iter().flatten().for_each(|t| template(t, params));
                    if let Some(Delay::Cel(cel)) = &mut send.delay {
                        *cel = with_params(cel, params);
                    }
                }
                Action::Cancel(t) | Action::Stop(t) | Action::Log { value: t, .. } => template(t, params),
                Action::Spawn { id, input, .. } => {
                    template(id, params);
                    input.iter_mut().for_each(|t| template(t, params));
                }
                Action::If(branches) => {
                    for branch in branches {
                        if let Some(when) = &mut branch.when {
                            *when = with_params(when, params);
                        }
                        blocks.push(&mut branch.r#do);
                    }
                }
                Action::Each { r#in, r#do, .. } => {
                    *r#in = with_params(r#in, params);
                    blocks.push(r#do);
                }
                Action::Grant { key, uses, expires, data, .. } => {
                    template(key, params);
                    [uses, expires, data].into_iter().flatten().for_each(|t| template(t, params));
                }
                Action::Open { key, due, data, .. } => {
                    template(key, params);
                    [due, data].into_iter().flatten().for_each(|t| template(t, params));
                }
                Action::Revoke { key, .. } => key.iter_mut().for_each(|t| template(t, params)),
                Action::Close { key, r#as, .. } => [key, r#as].into_iter().flatten().for_each(|t| template(t, params)),
                Action::Name(_) => {}
            }
        }
    }
}

fn template(t: &mut Template, params: &str) {
    match t {
        Template::Literal(_) => {}
        Template::Cel(cel) => *cel = with_params(cel, params),
        Template::List(items) => items.iter_mut().for_each(|t| template(t, params)),
        Template::Object(fields) => fields.values_mut().for_each(|t| template(t, params)),
    }
}
