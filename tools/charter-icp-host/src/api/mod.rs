//! The functions that a canister imports (`ic0`), according to the interface specification of the
//! Internet Computer, section "System API".

mod answer;
mod calls;
mod stable;
mod system;

use wasmi::{AsContextMut, Caller, Engine, Linker};

use crate::BadModule;
use crate::entry::{Entries, Entry};
use crate::env::Env;
use crate::run::{Input, Trap};

/// Instructions charged for a function, in addition to the bytes that it copies; close to a
/// replica's cost, but not exactly the same.
const SMALL: u64 = 20;
/// Like [`SMALL`], for functions that do more than copy.
const LARGE: u64 = 500;
/// Maximum size of replies and arguments of calls between canisters, in bytes.
const LARGEST_MESSAGE: usize = 2 * 1024 * 1024;
/// Maximum size of replies to queries, in bytes.
const LARGEST_QUERY_REPLY: usize = 3 * 1024 * 1024;

type Canister<'a> = Caller<'a, Env>;
type Done<T = ()> = Result<T, wasmi::Error>;

/// Defines all functions.
pub(crate) fn linker(engine: &Engine) -> Result<Linker<Env>, BadModule> {
    let mut linker = Linker::new(engine);
    answer::define(&mut linker).map_err(BadModule::new)?;
    calls::define(&mut linker).map_err(BadModule::new)?;
    stable::define(&mut linker).map_err(BadModule::new)?;
    system::define(&mut linker).map_err(BadModule::new)?;
    Ok(linker)
}

/// Creates the trap for a violation of the contract between canister and system.
fn contract(message: impl Into<String>) -> wasmi::Error {
    wasmi::Error::host(Trap::Contract(message.into()))
}

/// Converts an address, offset or size, all of which are unsigned.
fn number(value: i32) -> usize {
    usize::try_from(value.cast_unsigned()).unwrap_or(usize::MAX)
}

/// Converts a size to the form that a canister receives.
fn size(length: usize) -> i32 {
    u32::try_from(length).unwrap_or(u32::MAX).cast_signed()
}

/// Charges the instructions of a system function.
fn charge(canister: &mut Canister<'_>, instructions: u64) -> Done {
    let left = canister.get_fuel()?;
    match left.checked_sub(instructions) {
        Some(left) => canister.set_fuel(left),
        None => {
            canister.set_fuel(0)?;
            Err(wasmi::Error::from(wasmi::TrapCode::OutOfFuel))
        }
    }
}

/// Starts a system function: checks the entry point and charges the cost.
fn enter(canister: &mut Canister<'_>, name: &str, entries: Entries, cost: u64) -> Done {
    let entry = input(canister)?.call.entry;
    if !entries.has(entry) {
        return Err(contract(format!("\"ic0_{name}\" cannot be executed in {entry} mode")));
    }
    charge(canister, cost)
}

fn input<'c>(canister: &'c Canister<'_>) -> Done<&'c Input> {
    canister.data().input.as_deref().ok_or_else(|| contract("nothing is being executed"))
}

/// Returns the heap and the environment.
fn heap<'c>(canister: &'c mut Canister<'_>) -> Done<(&'c mut [u8], &'c mut Env)> {
    let memory = canister.data().memory.ok_or_else(|| contract("the module has no memory"))?;
    Ok(memory.data_and_store_mut(canister.as_context_mut()))
}

fn outside() -> wasmi::Error {
    contract("the address or size is outside the heap")
}

/// Returns a part of the heap or of a value.
fn part(bytes: &[u8], offset: usize, size: usize) -> Option<&[u8]> {
    bytes.get(offset..offset.checked_add(size)?)
}

fn part_mut(bytes: &mut [u8], offset: usize, size: usize) -> Option<&mut [u8]> {
    bytes.get_mut(offset..offset.checked_add(size)?)
}

/// Charges the instructions for copying bytes from or to the heap, after checking the bounds.
fn charge_bytes(canister: &mut Canister<'_>, at: usize, length: usize) -> Done {
    let (heap, _) = heap(canister)?;
    part(heap, at, length).ok_or_else(outside)?;
    charge(canister, u64::try_from(length).unwrap_or(u64::MAX))
}

/// Copies a part of a system value into the heap.
fn copy(
    canister: &mut Canister<'_>,
    (to, offset, length): (i32, i32, i32),
    value: impl for<'e> FnOnce(&'e Input) -> Done<&'e [u8]>,
) -> Done {
    charge_bytes(canister, number(to), number(length))?;
    let (heap, env) = heap(canister)?;
    let value = value(env.input.as_deref().ok_or_else(outside)?)?;
    let from = part(value, number(offset), number(length))
        .ok_or_else(|| contract(format!("the requested part is outside the value's {} bytes", value.len())))?;
    part_mut(heap, number(to), number(length)).ok_or_else(outside)?.copy_from_slice(from);
    Ok(())
}

/// Copies bytes from the heap.
fn take(canister: &mut Canister<'_>, from: i32, length: i32) -> Done<Vec<u8>> {
    charge_bytes(canister, number(from), number(length))?;
    let (heap, _) = heap(canister)?;
    part(heap, number(from), number(length)).map(<[u8]>::to_vec).ok_or_else(outside)
}

/// Writes a 128-bit number to the heap.
fn put_u128(canister: &mut Canister<'_>, to: i32, value: u128) -> Done {
    let (heap, _) = heap(canister)?;
    part_mut(heap, number(to), 16).ok_or_else(outside)?.copy_from_slice(&value.to_le_bytes());
    Ok(())
}

/// Maximum size of the reply of the current execution.
fn reply_limit(entry: Entry) -> usize {
    if entry == Entry::Query { LARGEST_QUERY_REPLY } else { LARGEST_MESSAGE }
}
