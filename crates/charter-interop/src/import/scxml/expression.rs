//! Expressions of a document in our CEL: each declared variable is read from `context`, and what cannot be read at all becomes an
//! expression that fails when it runs, because SCXML has no errors at load (REC 5.9).

use charter_expr::ast::{Kind, LinkKind, Node};
use charter_expr::{Env, Fuel, Program, Type};
use charter_kernel::definition::Template;
use charter_kernel::{ROOTS, SCXML_ROOTS};
use rustc_hash::FxHashSet;
use serde_json::Value as Json;

/// What an error message needs of a text.
const MAX_MESSAGE: usize = 300;

/// Which data model a document uses (REC 5, appendix B).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Model {
    Cel,
    /// No data and no expressions but `In`.
    Null,
}

/// The variables of a document.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) model: Model,
    declared: FxHashSet<String>,
    env: Env,
}

impl Names {
    pub(super) fn new(model: Model, declared: impl IntoIterator<Item = String>) -> Names {
        let mut env = Env::new();
        let declared: FxHashSet<String> = declared.into_iter().collect();
        for name in &declared {
            env.root(name, Type::Dyn);
        }
        Names { model, declared, env }
    }

    pub(super) fn is_declared(&self, name: &str) -> bool {
        self.declared.contains(name)
    }

    /// An expression, translated.
    pub(super) fn expression(&self, text: &str) -> String {
        if self.model == Model::Null {
            return fail("the null data model has no expressions");
        }
        self.translate(text)
    }

    /// A condition, translated.
    pub(super) fn condition(&self, text: &str) -> String {
        match self.model {
            Model::Cel => self.translate(text),
            Model::Null if is_in(text) => text.trim().to_owned(),
            Model::Null => fail("the null data model has no condition but `In('state')`"),
        }
    }

    fn translate(&self, text: &str) -> String {
        let ast = match charter_expr::parse(text) {
            Ok(ast) => ast,
            Err(error) => return fail(&format!("`{}` cannot be read: {error}", short(text))),
        };
        let mut renamed = false;
        let result = ast.rename_roots_in(&self.env, |name| {
            let to = if self.declared.contains(name) {
                "context"
            } else if ROOTS.contains(&name) {
                // A name of charters means nothing here.
                "undeclared"
            } else {
                return None;
            };
            renamed = true;
            Some(vec![to.to_owned(), name.to_owned()])
        });
        match result {
            Ok(_) if !renamed => text.to_owned(),
            Ok(ast) => ast.unparse(),
            Err(error) => fail(&error.to_string()),
        }
    }

    /// A value: a literal where it is one.
    pub(super) fn value(&self, text: &str) -> Template {
        if self.model == Model::Cel
            && let Some(json) = literal(text)
        {
            return Template::Literal(json);
        }
        Template::Cel(self.expression(text))
    }

    /// A place that can be assigned to, as `assign` writes it: `name`, `name.field`, `name[CEL]`.
    pub(super) fn location(&self, text: &str) -> Result<String, String> {
        if self.model == Model::Null {
            return Err("the null data model has no variables".into());
        }
        let no = || format!("`{}` is not a place that can be assigned to", short(text));
        let ast = charter_expr::parse(text).map_err(|error| format!("{}: {error}", no()))?;
        let (name, links) = match &ast.root().kind {
            Kind::Ident { name, absolute: false } => (name, &[][..]),
            Kind::Postfix { base, links } => match &base.kind {
                Kind::Ident { name, absolute: false } => (name, links.as_slice()),
                _ => return Err(no()),
            },
            _ => return Err(no()),
        };
        if SCXML_ROOTS.contains(&name.as_ref()) {
            return Err(format!("`{name}` is a system variable, which cannot be assigned to"));
        }
        if !self.is_declared(name) {
            return Err(format!("no variable `{name}` is declared"));
        }
        let mut path = name.to_string();
        for link in links {
            match &link.kind {
                LinkKind::Field(field) => {
                    path.push('.');
                    path.push_str(field);
                }
                LinkKind::Index(index) => {
                    path.push('[');
                    path.push_str(&self.translate(index.span.of(text)));
                    path.push(']');
                }
                _ => return Err(no()),
            }
        }
        Ok(path)
    }
}

/// An expression that fails when it is evaluated, and says why.
pub(super) fn fail(why: &str) -> String {
    let why: String = why.chars().take(MAX_MESSAGE).collect();
    format!("fail({})", quoted(&why))
}

/// A text as CEL: JSON's way of writing it is one of CEL's.
pub(super) fn quoted(text: &str) -> String {
    Json::from(text).to_string()
}

fn short(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}...", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// The value of a text that is a literal, of JSON or of CEL. Nothing is computed: `2015-09-01` is a date to its author.
pub(super) fn literal(text: &str) -> Option<Json> {
    if let Ok(mut json) = serde_json::from_str::<Json>(text) {
        return charter_expr::json::canonical(&mut json).is_ok().then_some(json);
    }
    let ast = charter_expr::parse(text).ok()?;
    if !is_literal(ast.root()) {
        return None;
    }
    let program = Program::compile(&ast, &Env::new()).ok()?;
    program.eval(&(), &mut Fuel::new(100_000)).ok()?.to_json().ok()
}

fn is_literal(node: &Node) -> bool {
    match &node.kind {
        Kind::Literal(_) => true,
        Kind::List(items) => items.iter().all(is_literal),
        Kind::Map(pairs) => pairs.iter().all(|(key, value)| is_literal(key) && is_literal(value)),
        _ => false,
    }
}

/// The texts that an expression certainly is, or may be: `'a'`, `c ? 'a' : 'b'`.
pub(super) fn texts(text: &str) -> Vec<String> {
    fn collect(node: &Node, found: &mut Vec<String>) {
        match &node.kind {
            Kind::Literal(charter_expr::ast::Literal::String(text)) => found.push(text.to_string()),
            Kind::Conditional { arms, otherwise } => {
                arms.iter().for_each(|(_, result)| collect(result, found));
                collect(otherwise, found);
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    if let Ok(ast) = charter_expr::parse(text) {
        collect(ast.root(), &mut found);
    }
    found
}

/// `In('id')`: all that the null data model can ask (REC B.1).
fn is_in(text: &str) -> bool {
    let Ok(ast) = charter_expr::parse(text) else {
        return false;
    };
    match &ast.root().kind {
        Kind::Call { function, args } => {
            function.as_ref() == "In" && matches!(args.as_slice(), [Node { kind: Kind::Literal(_), .. }])
        }
        _ => false,
    }
}

/// Whether a name can be written in an expression.
pub(super) fn is_name(text: &str) -> bool {
    charter_expr::parse(text)
        .is_ok_and(|ast| matches!(&ast.root().kind, Kind::Ident { name, absolute: false } if name.as_ref() == text))
}
