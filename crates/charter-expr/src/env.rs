//! The environment of an expression: the roots and functions it may use.

use std::collections::BTreeMap;

use crate::{Facts, Type};

/// A root's index in its [`Env`], in order of declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RootId(pub u16);

/// A host function's index in its [`Env`], in order of declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(pub u16);

/// A function provided by the host.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HostFunction {
    pub(crate) name: String,
    pub(crate) params: Vec<Type>,
    pub(crate) result: Type,
}

/// The names an expression may use. The standard library and the extensions are always available;
/// roots and further functions are declared, and a root hides a namespace or a type of the same
/// name.
#[derive(Clone, Debug, Default)]
pub struct Env {
    roots: Vec<(String, Type)>,
    root_ids: BTreeMap<String, RootId>,
    functions: Vec<HostFunction>,
    function_ids: BTreeMap<String, FunctionId>,
    container: String,
    pub(crate) facts: Facts,
}

impl Env {
    /// Creates an environment with the standard library and the extensions, but without roots.
    pub fn new() -> Env {
        Env::default()
    }

    /// Declares a root. The name may be qualified (`a.b`); declaring it again changes its type.
    ///
    /// An environment has at most 65,535 roots; further ones share the last id.
    pub fn root(&mut self, name: &str, ty: Type) -> RootId {
        if let Some(id) = self.root_ids.get(name).copied() {
            self.set_type(id, ty);
            return id;
        }
        let id = RootId(u16::try_from(self.roots.len()).unwrap_or(u16::MAX));
        self.roots.push((name.to_owned(), ty));
        self.root_ids.insert(name.to_owned(), id);
        id
    }

    /// Declares a function of the host, called `name(args)`. Declaring it again changes its types.
    pub fn function(&mut self, name: &str, params: Vec<Type>, result: Type) -> FunctionId {
        let function = HostFunction { name: name.to_owned(), params, result };
        if let Some(id) = self.function_ids.get(name).copied() {
            if let Some(place) = self.functions.get_mut(usize::from(id.0)) {
                *place = function;
            }
            return id;
        }
        let id = FunctionId(u16::try_from(self.functions.len()).unwrap_or(u16::MAX));
        self.functions.push(function);
        self.function_ids.insert(name.to_owned(), id);
        id
    }

    /// Changes the type of a root.
    pub fn set_type(&mut self, id: RootId, ty: Type) {
        if let Some((_, place)) = self.roots.get_mut(usize::from(id.0)) {
            *place = ty;
        }
    }

    /// Assumes facts that a condition has established before the expression is evaluated. The
    /// checker reports nothing that these facts rule out.
    pub fn assume(&mut self, facts: Facts) {
        self.facts.add(facts);
    }

    /// Sets the container (CEL specification, "Name Resolution"): `x` also means `container.x`,
    /// which is tried first.
    pub fn set_container(&mut self, container: &str) {
        self.container = container.to_owned();
    }

    /// The root with exactly that name.
    pub fn root_id(&self, name: &str) -> Option<RootId> {
        self.root_ids.get(name).copied()
    }

    /// The function with exactly that name.
    pub fn function_id(&self, name: &str) -> Option<FunctionId> {
        self.function_ids.get(name).copied()
    }

    /// The name of a root.
    pub fn root_name(&self, id: RootId) -> Option<&str> {
        self.roots.get(usize::from(id.0)).map(|(name, _)| name.as_str())
    }

    /// The type of a root.
    pub fn root_type(&self, id: RootId) -> Option<&Type> {
        self.roots.get(usize::from(id.0)).map(|(_, ty)| ty)
    }

    pub(crate) fn host_function(&self, id: FunctionId) -> Option<&HostFunction> {
        self.functions.get(usize::from(id.0))
    }

    pub(crate) fn root_names(&self) -> impl Iterator<Item = &str> {
        self.roots.iter().map(|(name, _)| name.as_str())
    }

    pub(crate) fn function_names(&self) -> impl Iterator<Item = &str> {
        self.functions.iter().map(|f| f.name.as_str())
    }

    /// Resolves a name by the container rules: innermost container first.
    pub(crate) fn resolve<T>(&self, name: &str, absolute: bool, find: impl Fn(&str) -> Option<T>) -> Option<T> {
        let mut container = if absolute { "" } else { self.container.as_str() };
        while !container.is_empty() {
            if let Some(found) = find(&format!("{container}.{name}")) {
                return Some(found);
            }
            container = container.rsplit_once('.').map_or("", |(outer, _)| outer);
        }
        find(name)
    }
}
