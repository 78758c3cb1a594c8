//! An instance of a module. It executes one entry point at a time, and its state can be saved and
//! loaded.

use std::sync::Arc;

use wasmi::{Global, Instance as Wasm, Memory, Store, Table, Val};

use crate::BadModule;
use crate::code::{Code, MEMORY, Machine, TABLE};
use crate::env::Env;
use crate::run::{Closure, Input, Ran, Target, Trap};
use crate::stable::Stable;

/// A copy of the heap and the globals of an instance.
#[derive(Debug, Default)]
pub(crate) struct Image {
    memory: Vec<u8>,
    globals: Vec<Val>,
}

/// An instantiated module.
pub(crate) struct Instance {
    pub(crate) code: Arc<Code>,
    store: Store<Env>,
    wasm: Wasm,
    memory: Option<Memory>,
    table: Option<Table>,
    globals: Vec<Global>,
}

impl Instance {
    /// Creates an instance; its start function has not run.
    pub(crate) fn new(code: &Arc<Code>) -> Result<Instance, BadModule> {
        let machine = Machine::get()?;
        let mut store = Store::new(&machine.engine, Env::default());
        store.set_fuel(u64::MAX).map_err(BadModule::new)?;
        let wasm = machine.linker.instantiate_and_start(&mut store, &code.module).map_err(|error| {
            BadModule::new(format!("it cannot be instantiated: {error} (an import that the test host does not have?)"))
        })?;
        let memory = wasm.get_memory(&store, MEMORY);
        let table = wasm.get_table(&store, TABLE);
        let globals = (0..code.globals).filter_map(|index| wasm.get_global(&store, &Code::global(index))).collect();
        store.data_mut().memory = memory;
        Ok(Instance { code: Arc::clone(code), store, wasm, memory, table, globals })
    }

    /// The size of the heap in bytes.
    pub(crate) fn heap(&self) -> usize {
        self.memory.map_or(0, |memory| memory.data_size(&self.store))
    }

    /// Executes an entry point. The state changes even if it traps; the caller rolls it back.
    pub(crate) fn run(&mut self, input: &Arc<Input>, stable: &mut Stable) -> Ran {
        let env = self.store.data_mut();
        env.begin(input);
        std::mem::swap(&mut env.stable, stable);
        let entered = self.store.set_fuel(input.call.limit).and_then(|()| self.enter(&input.call.target));
        let left = self.store.get_fuel().unwrap_or(0);
        let env = self.store.data_mut();
        std::mem::swap(&mut env.stable, stable);
        let (effects, printed) = env.end();
        let result = entered.map(|()| effects).map_err(|error| Trap::of(&error, input.call.limit));
        let instructions = match &result {
            Err(Trap::Instructions(limit)) => *limit,
            _ => input.call.limit.saturating_sub(left),
        };
        Ran { result, instructions, printed }
    }

    fn enter(&mut self, target: &Target) -> Result<(), wasmi::Error> {
        match target {
            Target::Export(name) => self.wasm.get_typed_func::<(), ()>(&self.store, name)?.call(&mut self.store, ()),
            Target::Table(Closure { function, environment }) => {
                let entry = self.table.and_then(|table| table.get(&self.store, u64::from(*function)));
                let found = match entry {
                    Some(wasmi::Ref::Func(wasmi::Nullable::Val(found))) => found.typed::<i32, ()>(&self.store).ok(),
                    _ => None,
                };
                let function = found.ok_or_else(|| wasmi::Error::host(Trap::Function(*function)))?;
                function.call(&mut self.store, environment.cast_signed())
            }
        }
    }

    /// Saves the state.
    pub(crate) fn save(&self, image: &mut Image) {
        image.memory.clear();
        if let Some(memory) = self.memory {
            image.memory.extend_from_slice(memory.data(&self.store));
        }
        image.globals.clear();
        image.globals.extend(self.globals.iter().map(|global| global.get(&self.store)));
    }

    /// Loads a state of the same module.
    pub(crate) fn load(&mut self, image: &Image) -> Result<(), BadModule> {
        self.set(&image.memory, &image.globals)
    }

    /// Copies the state of another instance of the same module.
    pub(crate) fn copy(&mut self, other: &Instance) -> Result<(), BadModule> {
        let globals: Vec<Val> = other.globals.iter().map(|global| global.get(&other.store)).collect();
        let memory = other.memory.map(|memory| memory.data(&other.store)).unwrap_or_default();
        self.set(memory, &globals)
    }

    fn set(&mut self, bytes: &[u8], globals: &[Val]) -> Result<(), BadModule> {
        const PAGE: usize = 65_536;
        if self.heap() > bytes.len() {
            // A memory cannot shrink, so start with a new instance.
            *self = Instance::new(&self.code)?;
        }
        if let Some(memory) = self.memory {
            let missing = bytes.len().saturating_sub(self.heap()) / PAGE;
            memory.grow(&mut self.store, u64::try_from(missing).unwrap_or(u64::MAX)).map_err(BadModule::new)?;
            if let Some(heap) = memory.data_mut(&mut self.store).get_mut(..bytes.len()) {
                heap.copy_from_slice(bytes);
            }
        }
        for (global, value) in self.globals.iter().zip(globals) {
            global.set(&mut self.store, value.clone()).map_err(BadModule::new)?;
        }
        Ok(())
    }
}
