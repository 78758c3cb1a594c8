//! Reads the properties of a module that rewriting it needs.

use std::collections::BTreeMap;

use wasmparser::{
    CompositeInnerType, ElementItems, ExternalKind, FuncType, KnownCustom, Name, Operator, OperatorsReader, Payload,
    TableInit, TypeRef,
};

/// The prefix of the polyfill's functions, followed by the name of the WASI function.
pub(crate) const POLYFILL: &str = "__ic_custom_";

/// The properties of a module that rewriting needs.
#[derive(Default)]
pub(crate) struct Found<'a> {
    pub(crate) types: Vec<Option<FuncType>>,
    pub(crate) imports: Vec<(&'a str, &'a str, u32)>,
    pub(crate) other_imports: Vec<(&'a str, &'a str)>,
    pub(crate) defined: Vec<u32>,
    /// The functions that each defined function calls or takes the address of.
    pub(crate) uses: Vec<Vec<u32>>,
    /// The functions in tables and globals.
    pub(crate) values: Vec<u32>,
    /// The names of functions.
    names: BTreeMap<u32, &'a str>,
    pub(crate) exports: BTreeMap<&'a str, u32>,
    pub(crate) start: Option<u32>,
}

impl<'a> Found<'a> {
    /// Notes a part of the module.
    pub(crate) fn note(&mut self, payload: Payload<'a>) -> Result<(), wasmparser::Error> {
        match payload {
            Payload::TypeSection(section) => {
                for group in section {
                    self.types.extend(group?.into_types().map(|ty| match ty.composite_type.inner {
                        CompositeInnerType::Func(ty) => Some(ty),
                        _ => None,
                    }));
                }
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import?;
                    match import.ty {
                        TypeRef::Func(ty) => self.imports.push((import.module, import.name, ty)),
                        _ => self.other_imports.push((import.module, import.name)),
                    }
                }
            }
            Payload::FunctionSection(section) => {
                for ty in section {
                    self.defined.push(ty?);
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export?;
                    if export.kind == ExternalKind::Func {
                        self.exports.insert(export.name, export.index);
                    }
                }
            }
            Payload::StartSection { func, .. } => self.start = Some(func),
            Payload::GlobalSection(section) => {
                for global in section {
                    functions_in(&mut global?.init_expr.get_operators_reader(), &mut self.values)?;
                }
            }
            Payload::TableSection(section) => {
                for table in section {
                    if let TableInit::Expr(init) = table?.init {
                        functions_in(&mut init.get_operators_reader(), &mut self.values)?;
                    }
                }
            }
            Payload::ElementSection(section) => {
                for element in section {
                    match element?.items {
                        ElementItems::Functions(functions) => {
                            for function in functions {
                                self.values.push(function?);
                            }
                        }
                        ElementItems::Expressions(_, expressions) => {
                            for expression in expressions {
                                functions_in(&mut expression?.get_operators_reader(), &mut self.values)?;
                            }
                        }
                    }
                }
            }
            Payload::CustomSection(section) => {
                if let KnownCustom::Name(names) = section.as_known() {
                    // A damaged name is only a name.
                    for name in names.into_iter().flatten() {
                        if let Name::Function(names) = name {
                            self.names.extend(names.into_iter().flatten().map(|name| (name.index, name.name)));
                        }
                    }
                }
            }
            Payload::CodeSectionEntry(body) => {
                let mut uses = Vec::new();
                functions_in(&mut body.get_operators_reader()?, &mut uses)?;
                self.uses.push(uses);
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns, for each function, whether an export, the start, a table or a global leads to it.
    pub(crate) fn reachable(&self, roots: impl IntoIterator<Item = u32>, targets: &BTreeMap<u32, u32>) -> Vec<bool> {
        let imports = self.imports.len();
        let mut reachable = vec![false; imports.saturating_add(self.defined.len())];
        let mut open: Vec<u32> = roots.into_iter().chain(self.values.iter().copied()).collect();
        while let Some(next) = open.pop() {
            let index = usize::try_from(*targets.get(&next).unwrap_or(&next)).unwrap_or(usize::MAX);
            match reachable.get_mut(index) {
                Some(reached) if !*reached => *reached = true,
                _ => continue,
            }
            let uses = index.checked_sub(imports).and_then(|defined| self.uses.get(defined));
            open.extend(uses.into_iter().flatten());
        }
        reachable
    }

    /// Returns the name of a function without its hash, which ends the names of Rust functions.
    pub(crate) fn name(&self, function: usize) -> &'a str {
        let name = u32::try_from(function).ok().and_then(|function| self.names.get(&function));
        let name = name.copied().unwrap_or_default();
        name.rsplit_once("17h").map_or(name, |(name, _)| name)
    }

    pub(crate) fn signature(&self, function: u32) -> Option<&FuncType> {
        let function = usize::try_from(function).ok()?;
        let ty = match self.imports.get(function) {
            Some((_, _, ty)) => *ty,
            None => *self.defined.get(function.checked_sub(self.imports.len())?)?,
        };
        self.types.get(usize::try_from(ty).ok()?)?.as_ref()
    }

    /// Finds the polyfill's function for a WASI function; it must not be a WASI import itself.
    pub(crate) fn polyfill(&self, name: &str) -> Option<u32> {
        let function = *self.exports.get(format!("{POLYFILL}{name}").as_str())?;
        let import = self.imports.get(usize::try_from(function).ok()?);
        let is_wasi = import.is_some_and(|(module, ..)| module.starts_with("wasi_"));
        (!is_wasi).then_some(function)
    }
}

/// Collects the functions that instructions call or take the address of.
fn functions_in(reader: &mut OperatorsReader<'_>, functions: &mut Vec<u32>) -> Result<(), wasmparser::Error> {
    while !reader.eof() {
        match reader.read()? {
            Operator::Call { function_index }
            | Operator::ReturnCall { function_index }
            | Operator::RefFunc { function_index } => functions.push(function_index),
            _ => {}
        }
    }
    Ok(())
}
