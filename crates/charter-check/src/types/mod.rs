//! Types: every expression of a charter is checked where it stands, and values against what is declared for them.

mod context;
mod env;
mod fit;

use charter_expr::{Env, Type};
use charter_kernel::definition::{
    Action, Block, Delay, Guard, InterlockRule, PropertyRule, Require, Template,
};

use env::{Place, Types, event_of};

use crate::codes;
use crate::finding::{Finding, Severity};
use crate::model::walk::{indexes, variable_of};
use crate::model::{Model, escape};

/// What an expression has to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Want {
    Anything,
    Bool,
    /// A key, an id, an event type.
    Text,
    Delay,
    /// A time, or a length of time from now.
    Moment,
    List,
}

/// Checks all expressions.
pub(crate) fn check(model: &Model<'_>, findings: &mut Vec<Finding>) {
    let mut c = Checker {
        model,
        types: Types::new(model),
        findings,
    };
    for number in 0..model.charts.len() {
        c.chart(number);
    }
    c.shared();
}

struct Checker<'c, 'd> {
    model: &'c Model<'d>,
    types: Types,
    findings: &'c mut Vec<Finding>,
}

impl<'d> Checker<'_, 'd> {
    fn chart(&mut self, number: usize) {
        let model = self.model;
        let Some(chart) = model.charts.get(number) else {
            return;
        };
        let anything = Place::new(number, Type::Dyn);
        for (name, value) in &chart.def.context {
            let at = format!("{}/context/{}", chart.at, escape(name));
            let ty = self.template(value, &at, &anything);
            self.fits_context(number, name, Some(value), &ty, &at);
        }
        if let Some(output) = &chart.def.output {
            self.template(output, &format!("{}/output", chart.at), &anything);
        }
        for state in &chart.states {
            let (def, at) = (state.def, &state.at);
            for (key, blocks) in [("entry", &def.entry), ("exit", &def.exit)] {
                for (i, block) in blocks.iter().enumerate() {
                    self.block(block, &format!("{at}/{key}/{i}"), &anything, 0);
                }
            }
            if let Some(initial) = &def.initial {
                self.block(
                    &initial.actions,
                    &format!("{at}/initial/actions"),
                    &anything,
                    0,
                );
            }
            if let Some(output) = &def.output {
                self.template(output, &format!("{at}/output"), &anything);
            }
            for (name, value) in &def.data {
                self.template(value, &format!("{at}/data/{}", escape(name)), &anything);
            }
            for (i, after) in def.after.iter().enumerate() {
                self.delay(&after.delay, &format!("{at}/after/{i}/delay"), &anything);
            }
            for (i, invoke) in def.invoke.iter().enumerate() {
                let at = format!("{at}/invoke/{i}");
                let ty = invoke
                    .input
                    .as_ref()
                    .map(|t| self.template(t, &format!("{at}/input"), &anything));
                self.fits_input(&invoke.src, invoke.input.as_ref(), ty, &at, "input");
                if let Some(choose) = &invoke.choose {
                    let at = format!("{at}/choose/value");
                    self.cel(&choose.value, &at, &anything, Want::Text);
                }
                if let Some(timeout) = &invoke.timeout {
                    self.delay(timeout, &format!("{at}/timeout"), &anything);
                }
                self.block(&invoke.finalize, &format!("{at}/finalize"), &anything, 0);
            }
        }
        for t in &chart.transitions {
            let place = Place::new(number, event_of(model, chart, t));
            if let Some(guard) = &t.def.guard {
                self.guard(guard, &format!("{}/guard", t.at), &place, 0);
            }
            if let Some(when) = &t.def.when {
                self.cel(when, &format!("{}/when", t.at), &place, Want::Bool);
            }
            if let Some(approves) = &t.def.approves {
                self.cel(
                    approves,
                    &format!("{}/approves", t.at),
                    &place,
                    Want::Anything,
                );
            }
            for (i, require) in t.def.requires.iter().enumerate() {
                self.require(require, &format!("{}/requires/{i}", t.at), &place);
            }
            self.block(&t.def.actions, &format!("{}/actions", t.at), &place, 0);
        }
    }

    /// What stands beside the charts.
    fn shared(&mut self) {
        let model = self.model;
        let anything = Place::new(0, Type::Dyn);
        // Used or not: a guard or an action that nobody uses yet may still be wrong.
        let used = crate::lints::used_names(model);
        for (name, guard) in model
            .def
            .guards
            .iter()
            .filter(|(n, _)| !used.guards.contains(n.as_str()))
        {
            self.guard(guard, &format!("/guards/{}", escape(name)), &anything, 0);
        }
        for (name, block) in model
            .def
            .actions
            .iter()
            .filter(|(n, _)| !used.actions.contains(n.as_str()))
        {
            self.block(block, &format!("/actions/{}", escape(name)), &anything, 0);
        }
        for (name, delay) in &model.def.delays {
            self.delay(delay, &format!("/delays/{}", escape(name)), &anything);
        }
        for (name, sentence) in &model.def.rules {
            self.text(sentence, &format!("/rules/{}", escape(name)), &anything);
        }
        for (name, actor) in &model.def.actors {
            if let Some(timeout) = &actor.timeout {
                self.delay(
                    timeout,
                    &format!("/actors/{}/timeout", escape(name)),
                    &anything,
                );
            }
        }
        for (i, lock) in model.def.interlocks.iter().enumerate() {
            if let InterlockRule::Assert(cel) = &lock.rule {
                self.cel(
                    cel,
                    &format!("/interlocks/{i}/rule/assert"),
                    &Place::still(0, true),
                    Want::Bool,
                );
            }
        }
        for (i, property) in model.def.properties.iter().enumerate() {
            let at = format!("/properties/{i}/rule");
            let (cel, at) = match &property.rule {
                PropertyRule::Never { when, .. } => (when, format!("{at}/never/when")),
                PropertyRule::Always(cel) => (cel, format!("{at}/always")),
                PropertyRule::Eventually(cel) => (cel, format!("{at}/eventually")),
            };
            self.cel(cel, &at, &Place::still(0, false), Want::Bool);
        }
        if let Some(stream) = &model.def.stream {
            let mut env = Env::new();
            env.root("item", Type::Dyn);
            let parts = [
                ("run", &stream.run),
                ("type", &stream.r#type),
                ("id", &stream.id),
                ("at", &stream.at),
                ("data", &stream.data),
                ("to", &stream.to),
                ("by", &stream.by),
                ("input", &stream.input),
            ];
            for (key, cel) in parts {
                if let Some(cel) = cel {
                    self.judge(cel, &format!("/stream/{key}"), &env, None, Want::Anything);
                }
            }
            for (name, cel) in &stream.clocks {
                let at = format!("/stream/clocks/{}", escape(name));
                self.judge(cel, &at, &env, None, Want::Anything);
            }
            for (name, cel) in &stream.summary {
                let at = format!("/stream/summary/{}", escape(name));
                self.cel(cel, &at, &Place::still(0, false), Want::Anything);
            }
        }
    }

    fn guard(&mut self, guard: &'d Guard, at: &str, place: &Place, depth: usize) {
        if depth > 110 {
            return;
        }
        let deeper = depth.saturating_add(1);
        match guard {
            Guard::Cel(cel) => drop(self.cel(cel, &format!("{at}/cel"), place, Want::Bool)),
            Guard::Name(name) => {
                if let Some(guard) = self.model.def.guards.get(name) {
                    self.guard(guard, &format!("/guards/{}", escape(name)), place, deeper);
                }
            }
            Guard::And(all) => all
                .iter()
                .enumerate()
                .for_each(|(i, g)| self.guard(g, &format!("{at}/and/{i}"), place, deeper)),
            Guard::Or(any) => any
                .iter()
                .enumerate()
                .for_each(|(i, g)| self.guard(g, &format!("{at}/or/{i}"), place, deeper)),
            Guard::Not(guard) => self.guard(guard, &format!("{at}/not"), place, deeper),
        }
    }

    fn require(&mut self, require: &'d Require, at: &str, place: &Place) {
        match require {
            Require::Use { key, when, .. } => {
                self.text(key, &format!("{at}/use/key"), place);
                if let Some(when) = when {
                    self.cel(
                        when,
                        &format!("{at}/use/when"),
                        &Place {
                            entry: true,
                            ..place.clone()
                        },
                        Want::Bool,
                    );
                }
            }
            Require::Open { key, .. } => self.text(key, &format!("{at}/open/key"), place),
            Require::None { .. } => {}
        }
    }

    fn block(&mut self, block: &'d Block, at: &str, place: &Place, depth: usize) {
        if depth > 110 {
            return;
        }
        for (i, action) in block.iter().enumerate() {
            self.action(action, &format!("{at}/{i}"), place, depth.saturating_add(1));
        }
    }

    fn action(&mut self, action: &'d Action, at: &str, place: &Place, depth: usize) {
        match action {
            // A named block sees no names bound around its use.
            Action::Name(name) => {
                if let Some(block) = self.model.def.actions.get(name) {
                    let place = Place {
                        locals: Vec::new(),
                        ..place.clone()
                    };
                    self.block(block, &format!("/actions/{}", escape(name)), &place, depth);
                }
            }
            Action::Assign(list) => {
                for (path, value) in list {
                    let at = format!("{at}/assign/{}", escape(path));
                    for cel in indexes(path) {
                        self.quiet_cel(cel, &at, place);
                    }
                    let ty = self.template(value, &at, place);
                    self.fits_context(place.chart, path, Some(value), &ty, &at);
                }
            }
            Action::Raise { r#type, data } => {
                self.event(r#type, data.as_ref(), &format!("{at}/raise"), place)
            }
            Action::Emit { r#type, data } => {
                self.text(r#type, &format!("{at}/emit/type"), place);
                self.maybe(data.as_ref(), &format!("{at}/emit/data"), place);
            }
            Action::Send(send) => {
                let at = format!("{at}/send");
                self.event(&send.r#type, send.data.as_ref(), &at, place);
                for (key, t) in [("to", &send.to), ("id", &send.id)] {
                    if let Some(t) = t {
                        self.text(t, &format!("{at}/{key}"), place);
                    }
                }
                self.maybe(send.processor.as_ref(), &format!("{at}/processor"), place);
                if let Some(delay) = &send.delay {
                    self.delay(delay, &format!("{at}/delay"), place);
                }
            }
            Action::Cancel(id) => self.text(id, &format!("{at}/cancel"), place),
            Action::Stop(id) => self.text(id, &format!("{at}/stop"), place),
            Action::Log { value, .. } => {
                drop(self.template(value, &format!("{at}/log/value"), place))
            }
            Action::Spawn { machine, id, input } => {
                self.text(id, &format!("{at}/spawn/id"), place);
                let ty = input
                    .as_ref()
                    .map(|t| self.template(t, &format!("{at}/spawn/input"), place));
                self.fits_input(machine, input.as_ref(), ty, &format!("{at}/spawn"), "input");
            }
            Action::If(branches) => {
                for (i, branch) in branches.iter().enumerate() {
                    if let Some(when) = &branch.when {
                        self.cel(when, &format!("{at}/if/{i}/when"), place, Want::Bool);
                    }
                    self.block(&branch.r#do, &format!("{at}/if/{i}/do"), place, depth);
                }
            }
            Action::Each {
                r#in,
                r#as,
                index,
                r#do,
            } => {
                let ty = self.cel(r#in, &format!("{at}/each/in"), place, Want::List);
                let (item, key) = item_of(&ty);
                let mut place = place.clone();
                place.locals.push((r#as.clone(), item));
                place
                    .locals
                    .extend(index.iter().map(|name| (name.clone(), key.clone())));
                self.block(r#do, &format!("{at}/each/do"), &place, depth);
            }
            Action::Grant {
                key,
                uses,
                expires,
                data,
                ..
            } => {
                let at = format!("{at}/grant");
                self.text(key, &format!("{at}/key"), place);
                self.maybe(uses.as_ref(), &format!("{at}/uses"), place);
                self.moment(expires.as_ref(), &format!("{at}/expires"), place);
                self.maybe(data.as_ref(), &format!("{at}/data"), place);
            }
            Action::Revoke { key, .. } => {
                if let Some(key) = key {
                    self.text(key, &format!("{at}/revoke/key"), place);
                }
            }
            Action::Open { key, due, data, .. } => {
                let at = format!("{at}/open");
                self.text(key, &format!("{at}/key"), place);
                self.moment(due.as_ref(), &format!("{at}/due"), place);
                self.maybe(data.as_ref(), &format!("{at}/data"), place);
            }
            Action::Close { key, r#as, .. } => {
                if let Some(key) = key {
                    self.text(key, &format!("{at}/close/key"), place);
                }
                self.maybe(r#as.as_ref(), &format!("{at}/close/as"), place);
            }
        }
    }

    /// An event that an action makes, against the schema of its declaration.
    fn event(&mut self, kind: &'d Template, data: Option<&'d Template>, at: &str, place: &Place) {
        self.text(kind, &format!("{at}/type"), place);
        let ty = data.map_or(Type::Null, |t| {
            self.template(t, &format!("{at}/data"), place)
        });
        let Template::Literal(serde_json::Value::String(name)) = kind else {
            return;
        };
        let Some(schema) = self
            .model
            .def
            .events
            .get(name)
            .and_then(|e| e.data.as_ref())
        else {
            return;
        };
        if let Some(why) = fit::misfit(data, &ty, schema) {
            let at = if data.is_some() {
                format!("{at}/data")
            } else {
                at.to_string()
            };
            let finding = Finding::new(
                Severity::Warning,
                codes::DATA_MISMATCH,
                at,
                format!("this data does not fit the schema of `{name}`: {why}"),
            );
            self.findings.push(finding.help(format!(
                "give what `events.{name}.data` asks for, or change the schema"
            )));
        }
    }

    /// An assignment against `types.context`.
    fn fits_context(
        &mut self,
        chart: usize,
        path: &str,
        value: Option<&Template>,
        ty: &Type,
        at: &str,
    ) {
        let Some(schema) = self
            .model
            .charts
            .get(chart)
            .and_then(|c| c.def.context_schema.as_ref())
        else {
            return;
        };
        if path != variable_of(path) {
            return;
        }
        let Some(property) = schema.get("properties").and_then(|p| p.get(path)) else {
            return;
        };
        // References of the part lead into the whole.
        let mut part = property.clone();
        if let (Some(part), Some(defs)) = (part.as_object_mut(), schema.get("$defs")) {
            part.entry("$defs").or_insert_with(|| defs.clone());
        }
        if let Some(why) = fit::misfit(value, ty, &part) {
            let finding = Finding::new(
                Severity::Warning,
                codes::DATA_MISMATCH,
                at,
                format!("this value does not fit the declared type of `context.{path}`: {why}"),
            );
            self.findings
                .push(finding.help("change the value, or the type under `types.context`"));
        }
    }

    /// The input of an actor or machine.
    fn fits_input(
        &mut self,
        src: &str,
        value: Option<&Template>,
        ty: Option<Type>,
        at: &str,
        key: &str,
    ) {
        let model = self.model;
        let schema = match model.def.actors.get(src) {
            Some(actor) => actor.input.as_ref(),
            None => model.def.machines.get(src).and_then(|c| c.input.as_ref()),
        };
        let Some(schema) = schema else { return };
        if let Some(why) = fit::misfit(value, &ty.unwrap_or(Type::Null), schema) {
            let at = if value.is_some() {
                format!("{at}/{key}")
            } else {
                at.to_string()
            };
            let finding = Finding::new(
                Severity::Warning,
                codes::DATA_MISMATCH,
                at,
                format!("this input does not fit the input schema of `{src}`: {why}"),
            );
            self.findings.push(
                finding.help("an invocation with such an input fails with the code `schema`"),
            );
        }
    }

    fn maybe(&mut self, value: Option<&'d Template>, at: &str, place: &Place) {
        if let Some(value) = value {
            self.template(value, at, place);
        }
    }

    fn text(&mut self, value: &'d Template, at: &str, place: &Place) {
        match value {
            Template::Cel(cel) => drop(self.cel(cel, &format!("{at}/cel"), place, Want::Text)),
            other => drop(self.template(other, at, place)),
        }
    }

    fn moment(&mut self, value: Option<&'d Template>, at: &str, place: &Place) {
        match value {
            Some(Template::Cel(cel)) => {
                drop(self.cel(cel, &format!("{at}/cel"), place, Want::Moment))
            }
            other => self.maybe(other, at, place),
        }
    }

    fn delay(&mut self, delay: &'d Delay, at: &str, place: &Place) {
        if let Delay::Cel(cel) = delay {
            self.cel(cel, &format!("{at}/cel"), place, Want::Delay);
        }
    }

    fn template(&mut self, value: &'d Template, at: &str, place: &Place) -> Type {
        match value {
            Template::Literal(json) => Type::of_json(json),
            Template::Cel(cel) => self.cel(cel, &format!("{at}/cel"), place, Want::Anything),
            Template::List(items) => Type::list(Type::union(
                items
                    .iter()
                    .enumerate()
                    .map(|(i, t)| self.template(t, &format!("{at}/list/{i}"), place))
                    .collect::<Vec<_>>(),
            )),
            Template::Object(fields) => {
                let typed = fields.iter().map(|(k, t)| {
                    (
                        k.clone(),
                        charter_expr::Field::required(self.template(
                            t,
                            &format!("{at}/object/{}", escape(k)),
                            place,
                        )),
                    )
                });
                Type::object(typed.collect::<Vec<_>>())
            }
        }
    }

    /// An expression without a text of its own in the source: no place inside of it.
    fn quiet_cel(&mut self, cel: &'d str, at: &str, place: &Place) {
        let before = self.findings.len();
        self.cel(cel, at, place, Want::Anything);
        self.findings
            .iter_mut()
            .skip(before)
            .for_each(|f| f.bytes = None);
    }

    fn cel(&mut self, cel: &'d str, at: &str, place: &Place, want: Want) -> Type {
        let Some(ast) = self.model.ast(cel) else {
            return Type::Dyn;
        };
        let names_root = ast
            .reads()
            .iter()
            .any(|p| p.root() == "actors" && first_field(p) == Some("root"));
        let env = self.types.env(self.model, place, names_root);
        self.judge(cel, at, &env, Some(place.chart), want)
    }

    fn judge(
        &mut self,
        cel: &'d str,
        at: &str,
        env: &Env,
        chart: Option<usize>,
        want: Want,
    ) -> Type {
        let Some(ast) = self.model.ast(cel) else {
            return Type::Dyn;
        };
        let (ty, found) = charter_expr::check(&ast, env);
        for f in found {
            let severity = match f.severity {
                charter_expr::Severity::Error => Severity::Error,
                charter_expr::Severity::Warning => Severity::Warning,
            };
            let code = if f.message.contains("no field `")
                || f.message.contains("is not a declared field")
            {
                codes::UNKNOWN_FIELD
            } else {
                codes::TYPE
            };
            let mut finding =
                Finding::new(severity, code, at, f.message).bytes(f.span.start, f.span.end);
            finding.help = f.help;
            self.findings.push(finding);
        }
        if let Some(chart) = chart.and_then(|c| self.model.charts.get(c)) {
            self.states_named(&ast, at, chart);
        }
        if let Some(message) = unwanted(&ty, want) {
            self.findings
                .push(Finding::new(Severity::Error, codes::TYPE, at, message).bytes(0, cel.len()));
        }
        ty
    }

    /// `in('x')`: is there such a state?
    fn states_named(&mut self, ast: &charter_expr::Ast, at: &str, chart: &crate::model::Chart<'_>) {
        use charter_expr::ast::{Kind, Literal};
        for call in ast
            .calls()
            .into_iter()
            .filter(|c| !c.method && matches!(c.name.as_str(), "in" | "In"))
        {
            let Some(Kind::Literal(Literal::String(path))) = call.args.first().map(|n| &n.kind)
            else {
                continue;
            };
            if chart.outline.find(path).is_some() {
                continue;
            }
            let near = charter_expr::nearest(path, chart.states.iter().map(|s| s.path));
            let help = near.map_or_else(
                || "name a state by its path, such as `review.waiting`, or by its id".to_string(),
                |n| format!("did you mean `{n}`?"),
            );
            // `In` is SCXML's: false for what is not there.
            let severity = if call.name == "in" {
                Severity::Error
            } else {
                Severity::Warning
            };
            let of = if chart.name == "root" {
                String::new()
            } else {
                format!(" in machine `{}`", chart.name)
            };
            let finding = Finding::new(
                severity,
                codes::UNKNOWN_STATE,
                at,
                format!("there is no state `{path}`{of}"),
            )
            .bytes(call.span.start, call.span.end);
            self.findings.push(finding.help(help));
        }
    }
}

fn first_field(path: &charter_expr::Path) -> Option<&str> {
    match path.segments().first()? {
        charter_expr::Segment::Field(name) => Some(name),
        charter_expr::Segment::Index(_) => None,
    }
}

/// The items and keys of what `each` goes through.
fn item_of(ty: &Type) -> (Type, Type) {
    match ty {
        Type::List(item) => ((**item).clone(), Type::Int),
        Type::Map(key, value) => ((**value).clone(), (**key).clone()),
        Type::Object {
            fields,
            open: false,
        } => (
            Type::union(fields.values().map(|f| f.ty.clone())),
            Type::String,
        ),
        _ => (Type::Dyn, Type::Dyn),
    }
}

/// Why a type cannot be what is wanted.
fn unwanted(ty: &Type, want: Want) -> Option<String> {
    let (what, good): (&str, fn(&Type) -> bool) = match want {
        Want::Anything => return None,
        Want::Bool => ("a condition gives a bool", |t| matches!(t, Type::Bool)),
        Want::Text => ("a text is needed here", |t| {
            matches!(
                t,
                Type::String | Type::Int | Type::Uint | Type::Double | Type::Number | Type::Bool
            )
        }),
        Want::Delay => (
            "a length of time is needed here (a duration, milliseconds, or a text such as `24h`)",
            |t| matches!(t, Type::Duration | Type::Int | Type::Number | Type::String),
        ),
        Want::Moment => (
            "a time is needed here (a timestamp, a duration from now, a text, or milliseconds)",
            |t| {
                matches!(
                    t,
                    Type::Timestamp | Type::Duration | Type::Int | Type::Number | Type::String
                )
            },
        ),
        Want::List => ("`each` walks through a list or a map", |t| {
            matches!(t, Type::List(_) | Type::Map(..) | Type::Object { .. })
        }),
    };
    let any = match ty {
        Type::Union(types) => types.iter().any(|t| good(t) || *t == Type::Dyn),
        Type::Dyn => true,
        other => good(other),
    };
    (!any).then(|| format!("{what}, and this is a {ty}"))
}
