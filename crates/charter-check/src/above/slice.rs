//! Which values a search follows. A search for one property begins with the variables that its
//! condition reads, and goes on with those that what was decided on the way to a violation reads,
//! until there is no such way, or nothing more to follow.

use std::rc::Rc;

use charter_expr::ast::{BinaryOp, Kind, LinkKind, Literal, MacroName, Node, UnaryOp};
use charter_kernel::definition::{Action, InterlockRule, Template};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::explore::{condition_of, cone_of_influence};
use crate::model::Model;
use crate::model::walk::{Item, variable_of};
use crate::tree;

/// Which values a search follows; the others are unknown in every state.
#[derive(Clone)]
pub(super) struct Level {
    /// How each variable is followed, by chart and slot.
    pub(super) variables: Vec<Vec<Depth>>,
    pub(super) inputs: bool,
    /// Whether all constants of the charter are told apart, or only those of what is followed.
    pub(super) wide: bool,
    /// Conditions that are evaluated, and other expressions, though nothing that is followed
    /// depends on their values, because it matters whether they fail; `None`: all of them.
    exact: Option<FxHashSet<Rc<str>>>,
}

/// How a variable is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Depth {
    Not,
    /// Not what is in a list or a map.
    Shape,
    All,
}

/// What was decided both ways on the way to a state, the last step first.
pub(super) struct Path {
    pub(super) decided: Box<[Decided]>,
    pub(super) before: Option<Rc<Path>>,
}

/// An expression that was decided both ways.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Decided {
    pub(super) expression: Rc<str>,
    /// It was not evaluated, but taken to fail, to hold or not to hold.
    pub(super) unread: bool,
}

impl Path {
    /// The last expression that was decided both ways.
    pub(super) fn last(path: &Option<Rc<Path>>) -> Option<Rc<str>> {
        let mut at = path.as_deref();
        while let Some(path) = at {
            if let Some(last) = path.decided.last() {
                return Some(last.expression.clone());
            }
            at = path.before.as_deref();
        }
        None
    }
}

impl Level {
    /// No variable.
    pub(super) fn nothing(model: &Model<'_>) -> Level {
        let variables = model.charts.iter().map(|c| vec![Depth::Not; c.outline.variables.len()]).collect();
        Level { variables, inputs: false, wide: false, exact: Some(FxHashSet::default()) }
    }

    /// The variables that conditions read, and those that lead to them.
    pub(super) fn all(model: &Model<'_>) -> Level {
        let cone = cone_of_influence(model);
        let read = |(chart, names): (&crate::model::Chart<'_>, &FxHashSet<String>)| {
            let depth = |v: &&str| if names.contains(*v) { Depth::All } else { Depth::Not };
            chart.outline.variables.iter().map(depth).collect()
        };
        let variables = model.charts.iter().zip(&cone.variables).map(read).collect();
        let mut inputs = cone.inputs;
        model.visit_all(&mut |_, item| {
            if let Item::Cel(cel) = item {
                inputs |= model.reads_root(cel, "input");
            }
        });
        Level { variables, inputs, wide: true, exact: None }
    }

    /// What a property reads.
    pub(super) fn of_property(model: &Model<'_>, property: usize) -> Level {
        let mut level = Level::nothing(model);
        if let Some(property) = model.def.properties.get(property) {
            level.read(model, condition_of(property));
        }
        level
    }

    /// How the variables are followed, those of the same name in any chart.
    fn depths<'d>(&self, model: &Model<'d>) -> FxHashMap<&'d str, Depth> {
        let mut out: FxHashMap<&'d str, Depth> = FxHashMap::default();
        for (chart, depths) in model.charts.iter().zip(&self.variables) {
            for (name, depth) in chart.outline.variables.iter().zip(depths) {
                let known = out.entry(*name).or_insert(Depth::Not);
                *known = (*known).max(*depth);
            }
        }
        out
    }

    /// The variables that are followed.
    pub(super) fn followed<'d>(&self, model: &Model<'d>) -> FxHashSet<&'d str> {
        self.depths(model).into_iter().filter(|(_, depth)| *depth != Depth::Not).map(|(name, _)| name).collect()
    }

    /// Follows a variable, or all of them; whether one of them was followed less.
    fn follow(&mut self, model: &Model<'_>, name: Option<&str>, depth: Depth) -> bool {
        let mut new = false;
        for (chart, depths) in model.charts.iter().zip(&mut self.variables) {
            for (variable, known) in chart.outline.variables.iter().zip(depths) {
                if name.is_none_or(|name| name == *variable) && *known < depth {
                    *known = depth;
                    new = true;
                }
            }
        }
        new
    }

    /// Follows what an expression reads; whether something of it was not followed.
    fn read(&mut self, model: &Model<'_>, cel: &str) -> bool {
        let (names, inputs) = reads(cel);
        let mut new = inputs && !std::mem::replace(&mut self.inputs, true);
        for (name, depth) in names {
            new |= self.follow(model, name.as_deref(), depth);
        }
        new
    }

    /// Follows more, because of a way to a violation; `false` if there is nothing more to follow.
    pub(super) fn refine(&mut self, model: &Model<'_>, path: &Option<Rc<Path>>) -> bool {
        let mut at = path.as_deref();
        while let Some(path) = at {
            let mut new = false;
            for decided in &path.decided {
                new |= match (decided.unread, &mut self.exact) {
                    (true, Some(exact)) => exact.insert(decided.expression.clone()),
                    (true, None) => false,
                    (false, _) => self.read(model, &decided.expression),
                };
            }
            if new {
                return true;
            }
            at = path.before.as_deref();
        }
        // What flows into what is followed.
        let mut cels: Vec<&str> = Vec::new();
        let followed = self.followed(model);
        for chart in &model.charts {
            for (name, value) in &chart.def.context {
                if followed.contains(name.as_str()) {
                    cels.extend(Model::cels(value));
                }
            }
        }
        let mut values: Vec<(&str, &Template)> = Vec::new();
        model.visit_all(&mut |_, item| {
            if let Item::Assign(path, value) = item {
                values.push((path, value));
            }
        });
        for (path, value) in values {
            if followed.contains(variable_of(path)) {
                cels.extend(Model::cels(value));
            }
        }
        let mut new = false;
        for cel in cels {
            new |= self.read(model, cel);
        }
        if !new {
            for depth in self.variables.iter_mut().flatten().filter(|depth| **depth == Depth::Shape) {
                *depth = Depth::All;
                new = true;
            }
        }
        new || !std::mem::replace(&mut self.wide, true)
    }

    /// The expressions of the lists of `each` whose actions change nothing that is followed, so
    /// that it does not matter how often they run.
    pub(super) fn repeats(&self, model: &Model<'_>) -> FxHashSet<String> {
        let followed = self.followed(model);
        let (mut once, mut often) = (FxHashSet::default(), FxHashSet::default());
        model.visit_all(&mut |at, item| {
            let Item::Action(Action::Each { r#in, r#do, .. }) = item else { return };
            let mut harmless = true;
            model.visit_block(r#do, at, &mut |_, item| match item {
                Item::Assign(path, _) => harmless &= !followed.contains(variable_of(path)),
                Item::Action(action) => {
                    harmless &= matches!(
                        action,
                        Action::Emit { .. } | Action::Log { .. } | Action::If(_) | Action::Each { .. }
                    );
                }
                _ => {}
            });
            if harmless {
                once.insert(r#in.clone())
            } else {
                often.insert(r#in.clone())
            };
        });
        once.retain(|list| !often.contains(list));
        once
    }

    /// The expressions whose values are not computed, but guessed: conditions, and those on whose
    /// values nothing depends that is followed.
    pub(super) fn unread(&self, model: &Model<'_>) -> FxHashMap<String, Unread> {
        let Some(exact) = &self.exact else { return FxHashMap::default() };
        let mut read: FxHashSet<String> = model.def.properties.iter().map(|p| condition_of(p).to_string()).collect();
        let mut unread = FxHashMap::default();
        let mut classify = |cel: &str, used: Used| {
            let Ok(ast) = charter_expr::parse(cel) else { return };
            let how = match used {
                Used::AsCondition if is_condition(ast.root()) => Some(Unread::Condition),
                Used::Not if is_condition(ast.root()) => Some(Unread::Condition),
                Used::Not => Some(Unread::Value),
                Used::ForItsShape if matches!(ast.root().kind, Kind::Map(_) | Kind::List(_)) => Some(Unread::Value),
                _ => None,
            };
            let how = how.filter(|_| !exact.contains(cel));
            match how {
                Some(how) => drop(unread.insert(cel.to_string(), how)),
                None => drop(read.insert(cel.to_string())),
            }
        };
        for lock in &model.def.interlocks {
            if let InterlockRule::Assert(cel) = &lock.rule {
                classify(cel, Used::AsCondition);
            }
        }
        let used = |depth: Depth| match depth {
            Depth::Not => Used::Not,
            Depth::Shape => Used::ForItsShape,
            Depth::All => Used::Otherwise,
        };
        let depths = self.depths(model);
        let depth_of = |name: &str| depths.get(name).copied().unwrap_or(Depth::All);
        let mut contexts: FxHashMap<String, Depth> = FxHashMap::default();
        for chart in &model.charts {
            for name in chart.def.context.keys() {
                let at = format!("{}/context/{}", chart.at, crate::model::escape(name));
                contexts.insert(at, depth_of(name));
            }
        }
        let mut assigned = (String::new(), Depth::All);
        model.visit_all(&mut |at, item| match item {
            Item::Assign(path, _) => {
                let depth = depth_of(variable_of(path));
                // What is put into a list or a map does not change its shape.
                let part = depth == Depth::Shape && path.contains(['.', '[']);
                assigned = (at.to_string(), if part { Depth::Not } else { depth });
            }
            Item::Cel(cel) => {
                let within = |parts: &[&str]| parts.iter().any(|part| at.contains(part));
                let unused = within(&["/log/value/", "/emit/data/", "/output/"])
                    || within(&["/invoke/"]) && within(&["/input/"]);
                let context = at.split_once("/context/").and_then(|(before, after)| {
                    let name = after.split('/').next().unwrap_or_default();
                    contexts.get(&format!("{before}/context/{name}")).copied()
                });
                let target = Some(assigned.1).filter(|_| !assigned.0.is_empty() && at.starts_with(&assigned.0));
                let condition = at.ends_with("/when") || within(&["/guard/", "/guards/"]);
                let how = match target.or(context) {
                    Some(depth) => used(depth),
                    None if unused => Used::Not,
                    None if condition => Used::AsCondition,
                    None => Used::Otherwise,
                };
                classify(cel, how);
            }
            _ => {}
        });
        unread.retain(|cel, _| !read.contains(cel));
        unread
    }
}

/// The variables that an expression reads (`None`: all of them) and how, and whether it reads
/// inputs.
pub(super) fn reads(cel: &str) -> (Vec<(Option<String>, Depth)>, bool) {
    let Ok(ast) = charter_expr::parse(cel) else { return (Vec::new(), false) };
    let mut names: Vec<(Option<String>, Depth)> = Vec::new();
    let mut inputs = false;
    let mut compared: FxHashSet<*const Node> = FxHashSet::default();
    tree::comparisons(ast.root(), &mut |left, _, right| {
        let null = |node: &Node| matches!(node.kind, Kind::Literal(Literal::Null));
        compared.extend(null(right).then(|| std::ptr::from_ref(left)));
        compared.extend(null(left).then(|| std::ptr::from_ref(right)));
    });
    let mut seen: FxHashSet<*const Node> = FxHashSet::default();
    tree::visit(ast.root(), &mut |node| match &node.kind {
        Kind::Postfix { base, links } => {
            let mut before = matches!(&base.kind, Kind::Ident { name, .. } if name.as_ref() == "context");
            if before {
                seen.insert(std::ptr::from_ref(&**base));
            }
            for link in links {
                match &link.kind {
                    LinkKind::Field(field) if before => {
                        let shape = links.len() == 1 && compared.contains(&std::ptr::from_ref(node));
                        names.push((Some(field.to_string()), if shape { Depth::Shape } else { Depth::All }));
                    }
                    _ if before => names.push((None, Depth::All)),
                    _ => {}
                }
                before = matches!(&link.kind, LinkKind::Field(field) if field.as_ref() == "context");
            }
            if before {
                names.push((None, Depth::All));
            }
        }
        Kind::Ident { name, .. } => match name.as_ref() {
            "context" if !seen.contains(&std::ptr::from_ref(node)) => names.push((None, Depth::All)),
            "input" => inputs = true,
            _ => {}
        },
        _ => {}
    });
    (names, inputs)
}

/// What is known of the value of an expression that is not computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Unread {
    /// It is true or false, or fails.
    Condition,
    /// It has any value, or fails.
    Value,
}

/// What the value of an expression is used for.
#[derive(Clone, Copy)]
enum Used {
    /// For nothing that is followed.
    Not,
    AsCondition,
    /// For a variable of which only the shape is followed.
    ForItsShape,
    Otherwise,
}

/// Whether the value of an expression is a bool, if it has one.
fn is_condition(node: &Node) -> bool {
    match &node.kind {
        Kind::And(_) | Kind::Or(_) | Kind::Has(_) | Kind::Unary { op: UnaryOp::Not, .. } => true,
        Kind::Chain { rest, .. } => rest.last().is_some_and(|(op, _)| {
            !matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem)
        }),
        Kind::Call { function, .. } => matches!(function.as_ref(), "in" | "In"),
        Kind::Postfix { links, .. } => links.last().is_some_and(|link| match &link.kind {
            LinkKind::Macro { name, .. } => {
                matches!(name, MacroName::All | MacroName::Exists | MacroName::ExistsOne)
            }
            LinkKind::Method { name, .. } => {
                matches!(name.as_ref(), "startsWith" | "endsWith" | "contains" | "matches")
            }
            _ => false,
        }),
        Kind::Conditional { arms, otherwise } => {
            is_condition(otherwise) && arms.iter().all(|(_, result)| is_condition(result))
        }
        Kind::Literal(Literal::Bool(_)) => true,
        _ => false,
    }
}
