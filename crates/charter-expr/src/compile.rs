//! Compiles the syntax tree to a program: resolves names to slots, and folds constants where that
//! is cheap.

use std::sync::Arc;

use crate::ast::{Ast, BinaryOp, Kind, Link, LinkKind, Literal, MacroName, Node, UnaryOp};
use crate::error::CompileError;
use crate::functions::{self, Function};
use crate::names::{self, Meaning};
use crate::path::Path;
use crate::pattern::Pattern;
use crate::program::{Code, Constant, FieldStep, Fields, MacroStep, Op, Program, Step, StepKind};
use crate::{Duration, Env, ExprTimestamp, Span, suggest};

pub(crate) fn program(ast: &Ast, env: &Env, lenient: bool) -> Result<Program, CompileError> {
    let mut compiler = Compiler { env, lenient, locals: Vec::new(), reads: Vec::new() };
    let root = compiler.node(ast.root()).map_err(|e| *e)?;
    let mut reads = compiler.reads;
    reads.sort_by_key(|p| p.span());
    Ok(Program::new(ast.source().to_owned(), root, reads))
}

struct Compiler<'e> {
    env: &'e Env,
    lenient: bool,
    locals: Vec<Arc<str>>,
    reads: Vec<Path>,
}

/// Boxed, because every level of nesting has a result on the stack.
type Fail = Box<CompileError>;
type Compiled = Result<Op, Fail>;

fn op(span: Span, code: Code) -> Op {
    Op { span, code }
}

fn literal(literal: &Literal) -> Constant {
    match literal {
        Literal::Null => Constant::Null,
        Literal::Bool(b) => Constant::Bool(*b),
        Literal::Int(i) => Constant::Int(*i),
        Literal::Uint(u) => Constant::Uint(*u),
        Literal::Double(d) => Constant::Double(*d),
        Literal::String(s) => Constant::String(s.clone()),
        Literal::Bytes(b) => Constant::Bytes(b.clone()),
    }
}

impl Compiler<'_> {
    /// Compiles a node. The function is kept small, so that deep nesting needs little stack; the
    /// functions it calls do the work.
    fn node(&mut self, node: &Node) -> Compiled {
        match &node.kind {
            Kind::Ident { name, absolute } => self.chain_of_names(node, name, *absolute, &[]),
            Kind::Postfix { base, links } => self.links(base, links),
            _ => self.code(node).map(|code| op(node.span, code)),
        }
    }

    fn code(&mut self, node: &Node) -> Result<Code, Fail> {
        match &node.kind {
            Kind::Literal(l) => Ok(Code::Constant(literal(l))),
            Kind::List(items) => self.nodes(items).map(Code::List),
            Kind::Map(entries) => self.pairs(entries).map(Code::Map),
            Kind::Call { function, args } => self.call(node.span, function, args),
            Kind::Has(operand) => self.has(operand),
            Kind::Bind { name, value, body } => self.bind(name, value, body),
            Kind::Unary { op: UnaryOp::Not, count, operand } => {
                self.boxed(operand).map(|operand| Code::Not(*count, operand))
            }
            Kind::Unary { op: UnaryOp::Negate, count, operand } => {
                self.boxed(operand).map(|operand| Code::Negate(*count, operand))
            }
            Kind::Chain { first, rest } => self.chain(first, rest),
            Kind::And(operands) => self.nodes(operands).map(Code::And),
            Kind::Or(operands) => self.nodes(operands).map(Code::Or),
            Kind::Conditional { arms, otherwise } => {
                let arms = self.pairs(arms)?;
                self.boxed(otherwise).map(|otherwise| Code::Conditional(arms, otherwise))
            }
            Kind::Ident { .. } | Kind::Postfix { .. } => {
                // `node` resolves names together with their links.
                Err(invalid(node.span, "internal error: unresolved name"))
            }
        }
    }

    fn boxed(&mut self, node: &Node) -> Result<Box<Op>, Fail> {
        self.node(node).map(Box::new)
    }

    fn bind(&mut self, name: &Arc<str>, value: &Node, body: &Node) -> Result<Code, Fail> {
        let value = self.boxed(value)?;
        let before = self.locals.len();
        self.locals.push(name.clone());
        let body = self.boxed(body);
        self.locals.truncate(before);
        Ok(Code::Bind(value, body?))
    }

    fn nodes(&mut self, nodes: &[Node]) -> Result<Box<[Op]>, Fail> {
        let mut out = Vec::with_capacity(nodes.len());
        for node in nodes {
            out.push(self.node(node)?);
        }
        Ok(out.into())
    }

    fn pairs(&mut self, pairs: &[(Node, Node)]) -> Result<Box<[(Op, Op)]>, Fail> {
        let mut out = Vec::with_capacity(pairs.len());
        for (a, b) in pairs {
            let a = self.node(a)?;
            out.push((a, self.node(b)?));
        }
        Ok(out.into())
    }

    fn chain(&mut self, first: &Node, rest: &[(BinaryOp, Node)]) -> Result<Code, Fail> {
        let first = self.boxed(first)?;
        let mut compiled = Vec::with_capacity(rest.len());
        for (op, node) in rest {
            compiled.push((*op, self.node(node)?));
        }
        Ok(in_constants(first, compiled))
    }

    fn call(&mut self, span: Span, name: &Arc<str>, args: &[Node]) -> Result<Code, Fail> {
        if let Some(id) = self.env.resolve(name, false, |n| self.env.function_id(n)) {
            return Ok(Code::HostCall(id, self.nodes(args)?));
        }
        match functions::find(name, false) {
            Some(entry) => self.library(entry.function, args),
            None => {
                if !self.lenient {
                    return Err(Box::new(names::unknown_function(self.env, name, false, span)));
                }
                Ok(Code::UnknownCall(name.clone()))
            }
        }
    }

    /// Compiles a call of a library function; evaluates it now if the result is a constant that is
    /// expensive to compute again.
    fn library(&mut self, function: Function, args: &[Node]) -> Result<Code, Fail> {
        if let [Node { kind: Kind::Literal(Literal::String(text)), .. }] = args {
            let constant = match function {
                Function::Timestamp => ExprTimestamp::parse(text).ok().map(Constant::Timestamp),
                Function::Duration => Duration::parse(text).ok().map(Constant::Duration),
                _ => None,
            };
            if let Some(constant) = constant {
                return Ok(Code::Constant(constant));
            }
        }
        if let (Function::Matches, [subject, Node { kind: Kind::Literal(Literal::String(pattern)), .. }]) =
            (function, args)
            && let Ok(pattern) = Pattern::constant(pattern)
        {
            return Ok(Code::Matches(Box::new(self.node(subject)?), Box::new(pattern)));
        }
        Ok(Code::Call(function, self.nodes(args)?))
    }

    fn has(&mut self, operand: &Node) -> Result<Code, Fail> {
        let Kind::Postfix { base, links } = &operand.kind else {
            return Err(invalid(operand.span, "`has` requires a field"));
        };
        let Some((Link { kind: LinkKind::Field(field), .. }, before)) = links.split_last() else {
            return Err(invalid(operand.span, "`has` requires a field"));
        };
        let reads = self.reads.len();
        let of = self.links(base, before)?;
        // The field itself is read, not only the value that contains it.
        if let Some(read) = self.reads.get_mut(reads)
            && read.segments.len() == before.len()
            && let Kind::Ident { .. } = base.kind
        {
            let mut segments = read.segments.clone();
            segments.push(crate::path::Segment::Field(field.clone()));
            *read = Path::new(read.root.clone(), read.id, segments, operand.span);
        }
        Ok(Code::Has(Box::new(of), field.clone()))
    }

    fn links(&mut self, base: &Node, links: &[Link]) -> Compiled {
        if let Kind::Ident { name, absolute } = &base.kind {
            return self.chain_of_names(base, name, *absolute, links);
        }
        let base = self.node(base)?;
        self.steps(base, links)
    }

    fn chain_of_names(&mut self, base: &Node, name: &Arc<str>, absolute: bool, links: &[Link]) -> Compiled {
        let meaning = names::resolve(self.env, &self.locals, name, absolute, links);
        let used = match &meaning {
            Meaning::Root { used, .. }
            | Meaning::Type { used, .. }
            | Meaning::Library { used, .. }
            | Meaning::Host { used, .. } => *used,
            Meaning::Local(_) | Meaning::Unknown => 0,
        };
        let (names, rest) = links.split_at_checked(used).unwrap_or((links, &[]));
        let span = names.last().map_or(base.span, |l| base.span.to(l.span));
        let args: &[Node] = match names.last().map(|l| &l.kind) {
            Some(LinkKind::Method { args, .. }) => args,
            _ => &[],
        };
        let code = match meaning {
            Meaning::Local(slot) => Code::Local(slot, name.clone()),
            Meaning::Root { id, .. } => {
                let root: Arc<str> = self.env.root_name(id).unwrap_or(name).into();
                self.reads.push(names::path(root.clone(), Some(id), span, rest));
                if let Some(code) = fields(id, &root, rest) {
                    let end = rest.last().map_or(span, |l| span.to(l.span));
                    return Ok(op(end, code));
                }
                Code::Root(id, root)
            }
            Meaning::Type { name, .. } => Code::Constant(Constant::Type(name)),
            Meaning::Library { entry, .. } => self.library(entry.function, args)?,
            Meaning::Host { id, .. } => Code::HostCall(id, self.nodes(args)?),
            Meaning::Unknown if self.lenient => Code::Unbound(name.clone()),
            Meaning::Unknown => return Err(Box::new(self.unknown_root(name, base.span))),
        };
        self.steps(op(span, code), rest)
    }

    fn steps(&mut self, base: Op, links: &[Link]) -> Compiled {
        let Some(last) = links.last() else {
            return Ok(base);
        };
        let span = base.span.to(last.span);
        let mut steps = Vec::with_capacity(links.len());
        for link in links {
            steps.push(Step { span: link.span, kind: self.step(link)? });
        }
        Ok(op(span, Code::Links(Box::new(base), steps.into())))
    }

    fn step(&mut self, link: &Link) -> Result<StepKind, Fail> {
        match &link.kind {
            LinkKind::Field(name) => Ok(StepKind::Field(name.clone())),
            LinkKind::Index(index) => self.node(index).map(StepKind::Index),
            LinkKind::Method { name, args } => match functions::find(name, true) {
                Some(entry) => self.method(entry.function, args),
                None if self.lenient => Ok(StepKind::UnknownMethod(name.clone())),
                None => Err(Box::new(names::unknown_function(self.env, name, true, link.span))),
            },
            LinkKind::Macro { name, vars, condition, body } => {
                self.macro_step(*name, vars, condition.as_deref(), body).map(|m| StepKind::Macro(Box::new(m)))
            }
        }
    }

    fn macro_step(
        &mut self,
        name: MacroName,
        vars: &[Arc<str>],
        condition: Option<&Node>,
        body: &Node,
    ) -> Result<MacroStep, Fail> {
        let before = self.locals.len();
        self.locals.extend_from_slice(vars);
        let condition = condition.map(|n| self.node(n)).transpose();
        let body = self.node(body);
        self.locals.truncate(before);
        Ok(MacroStep { name, two_vars: vars.len() > 1, condition: condition?, body: body? })
    }

    fn method(&mut self, function: Function, args: &[Node]) -> Result<StepKind, Fail> {
        if let (Function::Matches, [Node { kind: Kind::Literal(Literal::String(pattern)), .. }]) = (function, args)
            && let Ok(pattern) = Pattern::constant(pattern)
        {
            return Ok(StepKind::Matches(Box::new(pattern)));
        }
        Ok(StepKind::Method(function, self.nodes(args)?))
    }

    fn unknown_root(&self, name: &str, span: Span) -> CompileError {
        let known: Vec<&str> = self.locals.iter().map(|l| &**l).chain(self.env.root_names()).collect();
        CompileError {
            span,
            message: format!("unknown name `{name}`"),
            help: suggest::did_you_mean(name, known.iter().copied()).or_else(|| names::listed(&known)),
        }
    }
}

/// Compiles a chain of operators; `x in [constants]` needs no list at run time.
fn in_constants(first: Box<Op>, rest: Vec<(BinaryOp, Op)>) -> Code {
    if let [(BinaryOp::In, Op { code: Code::List(items), .. })] = rest.as_slice() {
        let constant = |o: &Op| match &o.code {
            Code::Constant(c) => Some(c.clone()),
            _ => None,
        };
        if let Some(constants) = items.iter().map(constant).collect() {
            return Code::InConstants(first, constants);
        }
    }
    Code::Chain(first, rest.into())
}

/// Compiles `root.a.b`, if there are no other links.
fn fields(root: crate::RootId, name: &Arc<str>, links: &[Link]) -> Option<Code> {
    if links.is_empty() {
        return None;
    }
    let steps: Option<Box<[FieldStep]>> = links
        .iter()
        .map(|l| match &l.kind {
            LinkKind::Field(name) => Some(FieldStep { name: (&**name).into(), span: l.span }),
            _ => None,
        })
        .collect();
    steps.map(|steps| Code::Fields(Box::new(Fields { root, name: name.clone(), steps })))
}

fn invalid(span: Span, message: &str) -> Fail {
    Box::new(CompileError { span, message: message.to_owned(), help: None })
}
