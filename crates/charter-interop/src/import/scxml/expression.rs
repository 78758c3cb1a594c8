//! Translates expressions to CEL in a charter: declared variables become fields of `context`. An
//! invalid expression becomes an expression that fails at run time, because SCXML does not report
//! errors at load time (REC 5.9).

use charter_expr::ast::{Kind, LinkKind, Node};
use charter_expr::{Env, Fuel, Program, Type};
use charter_kernel::definition::Template;
use charter_kernel::{ROOTS, SCXML_ROOTS};
use rustc_hash::FxHashSet;
use serde_json::Value as Json;

/// Upper limit of the length of a message, in characters.
const MAX_MESSAGE: usize = 300;

/// The data model of a document (REC 5, appendix B).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DataModel {
    Cel,
    /// No data, and no expressions except `In`.
    Null,
}

/// Why a location cannot be assigned to. The message becomes part of the imported charter; see
/// [`fail`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum LocationError {
    #[error("the null data model has no variables")]
    NullDataModel,
    #[error("`{0}` cannot be assigned to")]
    Invalid(String),
    #[error("`{location}` cannot be assigned to: {error}")]
    Syntax { location: String, error: String },
    #[error("`{0}` is a system variable, which cannot be assigned to")]
    SystemVariable(String),
    #[error("no variable `{0}` is declared")]
    Undeclared(String),
}

/// The variables of a document.
#[derive(Debug)]
pub(super) struct Variables {
    pub(super) model: DataModel,
    declared: FxHashSet<String>,
    env: Env,
}

impl Variables {
    pub(super) fn new(model: DataModel, declared: impl IntoIterator<Item = String>) -> Variables {
        let mut env = Env::new();
        let declared: FxHashSet<String> = declared.into_iter().collect();
        for name in &declared {
            env.root(name, Type::Dyn);
        }
        Variables { model, declared, env }
    }

    pub(super) fn is_declared(&self, name: &str) -> bool {
        self.declared.contains(name)
    }

    /// Translates an expression.
    pub(super) fn expression(&self, text: &str) -> String {
        if self.model == DataModel::Null {
            return fail("the null data model has no expressions");
        }
        self.translate(text)
    }

    /// Translates a condition.
    pub(super) fn condition(&self, text: &str) -> String {
        match self.model {
            DataModel::Cel => self.translate(text),
            DataModel::Null if is_in(text) => text.trim().to_owned(),
            DataModel::Null => fail("the null data model has no condition but `In('state')`"),
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
                // This name is a root name in charters, but undeclared in SCXML.
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

    /// Translates a value; a literal stays a literal.
    pub(super) fn value(&self, text: &str) -> Template {
        if self.model == DataModel::Cel
            && let Some(json) = literal(text)
        {
            return Template::Literal(json);
        }
        Template::Cel(self.expression(text))
    }

    /// Translates a location to the form of `assign`: `name`, `name.field`, `name[CEL]`.
    pub(super) fn location(&self, text: &str) -> Result<String, LocationError> {
        if self.model == DataModel::Null {
            return Err(LocationError::NullDataModel);
        }
        let no = || LocationError::Invalid(short(text));
        let ast = charter_expr::parse(text)
            .map_err(|error| LocationError::Syntax { location: short(text), error: error.to_string() })?;
        let (name, links) = match &ast.root().kind {
            Kind::Ident { name, absolute: false } => (name, &[][..]),
            Kind::Postfix { base, links } => match &base.kind {
                Kind::Ident { name, absolute: false } => (name, links.as_slice()),
                _ => return Err(no()),
            },
            _ => return Err(no()),
        };
        if SCXML_ROOTS.contains(&name.as_ref()) {
            return Err(LocationError::SystemVariable(name.to_string()));
        }
        if !self.is_declared(name) {
            return Err(LocationError::Undeclared(name.to_string()));
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

/// Returns an expression that fails at run time with a message. The message is part of the imported
/// charter, so changing it changes the digest of the charter.
pub(super) fn fail(why: &str) -> String {
    let why: String = why.chars().take(MAX_MESSAGE).collect();
    format!("fail({})", quoted(&why))
}

/// Quotes text as a CEL string literal; JSON strings are valid in CEL.
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

/// Returns the value of a JSON or CEL literal. Nothing is computed: `2015-09-01` is a date, not a
/// subtraction.
pub(super) fn literal(text: &str) -> Option<Json> {
    if let Ok(mut json) = charter_expr::strict_json::from_str(text) {
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

/// Returns the string literals that an expression can evaluate to: `'a'`, `c ? 'a' : 'b'`.
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

/// Whether an expression is `In('id')`, the only condition of the null data model (REC B.1).
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

/// Whether a name is valid in expressions.
pub(super) fn is_name(text: &str) -> bool {
    charter_expr::parse(text)
        .is_ok_and(|ast| matches!(&ast.root().kind, Kind::Ident { name, absolute: false } if name.as_ref() == text))
}
