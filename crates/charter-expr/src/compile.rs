//! From the syntax tree to a program: names to slots, constants folded where that is cheap.

use std::sync::Arc;

use crate::ast::{Ast, BinaryOp, Kind, Link, LinkKind, Literal, Node, UnaryOp};
use crate::error::CompileError;
use crate::functions::{self, Function, Pattern, Style};
use crate::names::{self, Meaning};
use crate::path::Path;
use crate::program::{Code, Constant, FieldStep, MacroStep, Op, Program, Step, StepKind};
use crate::{Duration, Env, Span, Timestamp, suggest};

pub(crate) fn program(ast: &Ast, env: &Env, lenient: bool) -> Result<Program, CompileError> {
    let mut compiler = Compiler {
        env,
        lenient,
        locals: Vec::new(),
        reads: Vec::new(),
    };
    let root = compiler.node(ast.root())?;
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

type Compiled = Result<Op, CompileError>;

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
    fn node(&mut self, node: &Node) -> Compiled {
        let code = match &node.kind {
            Kind::Literal(l) => Code::Constant(literal(l)),
            Kind::Ident { name, absolute } => {
                return self.chain_of_names(node, name, *absolute, &[]);
            }
            Kind::List(items) => Code::List(self.nodes(items)?),
            Kind::Map(entries) => Code::Map(self.pairs(entries)?),
            Kind::Call { function, args } => self.call(node.span, function, args)?,
            Kind::Has(operand) => self.has(operand)?,
            Kind::Bind { name, value, body } => {
                let value = self.node(value)?;
                let body = self.within(std::slice::from_ref(name), |c| c.node(body))?;
                Code::Bind(Box::new(value), Box::new(body))
            }
            Kind::Postfix { base, links } => return self.postfix(base, links),
            Kind::Unary {
                op: UnaryOp::Not,
                count,
                operand,
            } => Code::Not(*count, Box::new(self.node(operand)?)),
            Kind::Unary {
                op: UnaryOp::Negate,
                count,
                operand,
            } => Code::Negate(*count, Box::new(self.node(operand)?)),
            Kind::Chain { first, rest } => self.chain(first, rest)?,
            Kind::And(operands) => Code::And(self.nodes(operands)?),
            Kind::Or(operands) => Code::Or(self.nodes(operands)?),
            Kind::Conditional { arms, otherwise } => {
                Code::Conditional(self.pairs(arms)?, Box::new(self.node(otherwise)?))
            }
        };
        Ok(op(node.span, code))
    }

    fn nodes(&mut self, nodes: &[Node]) -> Result<Box<[Op]>, CompileError> {
        nodes.iter().map(|n| self.node(n)).collect()
    }

    fn pairs(&mut self, pairs: &[(Node, Node)]) -> Result<Box<[(Op, Op)]>, CompileError> {
        pairs
            .iter()
            .map(|(a, b)| Ok((self.node(a)?, self.node(b)?)))
            .collect()
    }

    /// Compiles something that sees further variables.
    fn within<T>(&mut self, vars: &[Arc<str>], f: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.locals.len();
        self.locals.extend_from_slice(vars);
        let result = f(self);
        self.locals.truncate(before);
        result
    }

    fn chain(&mut self, first: &Node, rest: &[(BinaryOp, Node)]) -> Result<Code, CompileError> {
        let first = self.node(first)?;
        let rest: Vec<(BinaryOp, Op)> = rest
            .iter()
            .map(|(o, n)| Ok((*o, self.node(n)?)))
            .collect::<Result<_, CompileError>>()?;
        if let [
            (
                BinaryOp::In,
                Op {
                    code: Code::List(items),
                    ..
                },
            ),
        ] = rest.as_slice()
        {
            let constants: Option<Box<[Constant]>> = items
                .iter()
                .map(|o| match &o.code {
                    Code::Constant(c) => Some(c.clone()),
                    _ => None,
                })
                .collect();
            if let Some(constants) = constants {
                return Ok(Code::InConstants(Box::new(first), constants));
            }
        }
        Ok(Code::Chain(Box::new(first), rest.into()))
    }

    fn call(&mut self, span: Span, name: &Arc<str>, args: &[Node]) -> Result<Code, CompileError> {
        if let Some(id) = self.env.resolve(name, false, |n| self.env.function_id(n)) {
            return Ok(Code::HostCall(id, self.nodes(args)?));
        }
        match functions::find(name, false) {
            Some(entry) => self.library(entry.function, args),
            None => {
                if !self.lenient {
                    return Err(self.unknown_function(name, false, span));
                }
                Ok(Code::UnknownCall(name.clone()))
            }
        }
    }

    /// A call of the library, computed now where it is a constant that is costly to make again.
    fn library(&mut self, function: Function, args: &[Node]) -> Result<Code, CompileError> {
        if let [
            Node {
                kind: Kind::Literal(Literal::String(text)),
                ..
            },
        ] = args
        {
            let constant = match function {
                Function::Timestamp => Timestamp::parse(text).ok().map(Constant::Timestamp),
                Function::Duration => Duration::parse(text).ok().map(Constant::Duration),
                _ => None,
            };
            if let Some(constant) = constant {
                return Ok(Code::Constant(constant));
            }
        }
        if let (
            Function::Matches,
            [
                subject,
                Node {
                    kind: Kind::Literal(Literal::String(pattern)),
                    ..
                },
            ],
        ) = (function, args)
            && let Ok(pattern) = Pattern::new(pattern)
        {
            return Ok(Code::Matches(
                Box::new(self.node(subject)?),
                Box::new(pattern),
            ));
        }
        Ok(Code::Call(function, self.nodes(args)?))
    }

    fn has(&mut self, operand: &Node) -> Result<Code, CompileError> {
        let Kind::Postfix { base, links } = &operand.kind else {
            return Err(invalid(operand.span, "`has` asks for a field"));
        };
        let Some((
            Link {
                kind: LinkKind::Field(field),
                ..
            },
            before,
        )) = links.split_last()
        else {
            return Err(invalid(operand.span, "`has` asks for a field"));
        };
        let reads = self.reads.len();
        let of = self.links(base, before)?;
        // What is read is the field itself, not only what holds it.
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

    fn postfix(&mut self, base: &Node, links: &[Link]) -> Compiled {
        self.links(base, links)
    }

    fn links(&mut self, base: &Node, links: &[Link]) -> Compiled {
        if let Kind::Ident { name, absolute } = &base.kind {
            return self.chain_of_names(base, name, *absolute, links);
        }
        let base = self.node(base)?;
        self.steps(base, links)
    }

    fn chain_of_names(
        &mut self,
        base: &Node,
        name: &Arc<str>,
        absolute: bool,
        links: &[Link],
    ) -> Compiled {
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
            Meaning::Local(slot) => Code::Local(slot),
            Meaning::Root { id, .. } => {
                let root: Arc<str> = self.env.root_name(id).unwrap_or(name).into();
                self.reads.push(names::path(root, Some(id), span, rest));
                if let Some(code) = fields(id, rest) {
                    let end = rest.last().map_or(span, |l| span.to(l.span));
                    return Ok(op(end, code));
                }
                Code::Root(id)
            }
            Meaning::Type { name, .. } => Code::Constant(Constant::Type(name)),
            Meaning::Library { entry, .. } => self.library(entry.function, args)?,
            Meaning::Host { id, .. } => Code::HostCall(id, self.nodes(args)?),
            Meaning::Unknown if self.lenient => Code::Unbound(name.clone()),
            Meaning::Unknown => return Err(self.unknown_root(name, base.span)),
        };
        self.steps(op(span, code), rest)
    }

    fn steps(&mut self, base: Op, links: &[Link]) -> Compiled {
        let Some(last) = links.last() else {
            return Ok(base);
        };
        let span = base.span.to(last.span);
        let steps: Box<[Step]> = links
            .iter()
            .map(|l| self.step(l))
            .collect::<Result<_, _>>()?;
        Ok(op(span, Code::Links(Box::new(base), steps)))
    }

    fn step(&mut self, link: &Link) -> Result<Step, CompileError> {
        let kind = match &link.kind {
            LinkKind::Field(name) => StepKind::Field(name.clone()),
            LinkKind::Index(index) => StepKind::Index(self.node(index)?),
            LinkKind::Method { name, args } => match functions::find(name, true) {
                Some(entry) => self.method(entry.function, args)?,
                None if self.lenient => StepKind::UnknownMethod(name.clone()),
                None => return Err(self.unknown_function(name, true, link.span)),
            },
            LinkKind::Macro {
                name,
                vars,
                condition,
                body,
            } => {
                let (condition, body) = self.within(vars, |c| {
                    let condition = condition.as_ref().map(|n| c.node(n)).transpose()?;
                    Ok::<_, CompileError>((condition, c.node(body)?))
                })?;
                let two_vars = vars.len() > 1;
                StepKind::Macro(Box::new(MacroStep {
                    name: *name,
                    two_vars,
                    condition,
                    body,
                }))
            }
        };
        Ok(Step {
            span: link.span,
            kind,
        })
    }

    fn method(&mut self, function: Function, args: &[Node]) -> Result<StepKind, CompileError> {
        if let (
            Function::Matches,
            [
                Node {
                    kind: Kind::Literal(Literal::String(pattern)),
                    ..
                },
            ],
        ) = (function, args)
            && let Ok(pattern) = Pattern::new(pattern)
        {
            return Ok(StepKind::Matches(Box::new(pattern)));
        }
        Ok(StepKind::Method(function, self.nodes(args)?))
    }

    fn unknown_root(&self, name: &str, span: Span) -> CompileError {
        let known: Vec<&str> = self
            .locals
            .iter()
            .map(|l| &**l)
            .chain(self.env.root_names())
            .collect();
        CompileError {
            span,
            message: format!("`{name}` is not known here"),
            help: suggest::did_you_mean(name, known.iter().copied()).or_else(|| listed(&known)),
        }
    }

    fn unknown_function(&self, name: &str, method: bool, span: Span) -> CompileError {
        unknown_function(self.env, name, method, span)
    }
}

/// `root.a.b` with nothing else.
fn fields(id: crate::RootId, links: &[Link]) -> Option<Code> {
    if links.is_empty() {
        return None;
    }
    let steps: Option<Box<[FieldStep]>> = links
        .iter()
        .map(|l| match &l.kind {
            LinkKind::Field(name) => Some(FieldStep {
                name: (&**name).into(),
                span: l.span,
            }),
            _ => None,
        })
        .collect();
    steps.map(|s| Code::Fields(id, s))
}

fn invalid(span: Span, message: &str) -> CompileError {
    CompileError {
        span,
        message: message.to_owned(),
        help: None,
    }
}

/// The names that are known, when none is near.
pub(crate) fn listed(known: &[&str]) -> Option<String> {
    if known.is_empty() || known.len() > 12 {
        return None;
    }
    let names: Vec<String> = known.iter().map(|n| format!("`{n}`")).collect();
    Some(format!("known names: {}", names.join(", ")))
}

pub(crate) fn unknown_function(env: &Env, name: &str, method: bool, span: Span) -> CompileError {
    let other_way = functions::find(name, !method).is_some();
    let help = if other_way && method {
        Some(format!("write `{name}(x)`"))
    } else if other_way {
        Some(format!("write `x.{name}(...)`"))
    } else {
        let wanted = if method { Style::Method } else { Style::Global };
        let library = functions::LIBRARY
            .iter()
            .filter(|e| e.style == wanted || e.style == Style::Both)
            .map(|e| e.name);
        let macros = [
            "all",
            "exists",
            "exists_one",
            "map",
            "filter",
            "transformList",
            "transformMap",
        ];
        let macros = macros.into_iter().filter(|_| method);
        let host: Vec<&str> = if method {
            Vec::new()
        } else {
            env.function_names().collect()
        };
        suggest::did_you_mean(name, library.chain(macros).chain(host))
    };
    CompileError {
        span,
        message: format!("there is no function `{name}`"),
        help,
    }
}
