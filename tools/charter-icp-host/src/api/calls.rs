//! Calls to canisters: `call_*`. They are sent when the execution succeeds.

use candid::Principal;
use wasmi::Linker;

use super::{Canister, Done, LARGE, LARGEST_MESSAGE, contract, enter, input, take};
use crate::entry::Entries;
use crate::env::Env;
use crate::run::{Closure, NewCall};

/// Maximum length of a method name, in bytes.
const LONGEST_NAME: usize = 20_000;
/// Maximum timeout of a best-effort call, in seconds.
const LONGEST_WAIT: u32 = 300;

pub(super) fn define(linker: &mut Linker<Env>) -> Result<(), wasmi::Error> {
    linker.func_wrap("ic0", "call_new", call_new)?;
    linker.func_wrap("ic0", "call_on_cleanup", |mut c: Canister<'_>, function: i32, environment: i32| -> Done {
        enter(&mut c, "call_on_cleanup", Entries::CALL, LARGE)?;
        let call = under_construction(&mut c)?;
        if call.cleanup.replace(closure(function, environment)).is_some() {
            return Err(contract("a call has two cleanups"));
        }
        Ok(())
    })?;
    linker.func_wrap("ic0", "call_data_append", |mut c: Canister<'_>, from: i32, length: i32| -> Done {
        enter(&mut c, "call_data_append", Entries::CALL, LARGE)?;
        under_construction(&mut c)?;
        let bytes = take(&mut c, from, length)?;
        let call = under_construction(&mut c)?;
        if call.arg.len().saturating_add(bytes.len()) > LARGEST_MESSAGE {
            return Err(contract(format!("the argument of a call is larger than {LARGEST_MESSAGE} bytes")));
        }
        call.arg.extend(bytes);
        Ok(())
    })?;
    linker.func_wrap("ic0", "call_with_best_effort_response", |mut c: Canister<'_>, seconds: i32| -> Done {
        enter(&mut c, "call_with_best_effort_response", Entries::CALL, LARGE)?;
        let call = under_construction(&mut c)?;
        if call.timeout.replace(seconds.cast_unsigned().min(LONGEST_WAIT)).is_some() {
            return Err(contract("a call has two timeouts"));
        }
        Ok(())
    })?;
    // Canisters have no balance from which to take cycles.
    linker.func_wrap("ic0", "call_cycles_add", |mut c: Canister<'_>, _: i64| -> Done {
        enter(&mut c, "call_cycles_add", Entries::CALL, LARGE)?;
        under_construction(&mut c).map(|_| ())
    })?;
    linker.func_wrap("ic0", "call_cycles_add128", |mut c: Canister<'_>, _: i64, _: i64| -> Done {
        enter(&mut c, "call_cycles_add128", Entries::CALL, LARGE)?;
        under_construction(&mut c).map(|_| ())
    })?;
    linker.func_wrap("ic0", "call_perform", |mut c: Canister<'_>| -> Done<i32> {
        enter(&mut c, "call_perform", Entries::CALL, LARGE)?;
        let env = c.data_mut();
        let call = env.call.take().ok_or_else(nothing)?;
        env.effects.calls.push(call);
        Ok(0)
    })?;
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "the specification fixes the parameters")]
fn call_new(
    mut c: Canister<'_>,
    callee: i32,
    callee_size: i32,
    name: i32,
    name_size: i32,
    reply: i32,
    reply_environment: i32,
    reject: i32,
    reject_environment: i32,
) -> Done {
    enter(&mut c, "call_new", Entries::CALL, LARGE)?;
    input(&c)?;
    let callee = take(&mut c, callee, callee_size)?;
    let callee = Principal::try_from_slice(&callee).map_err(|_| contract("the callee of a call is not a principal"))?;
    let name = take(&mut c, name, name_size)?;
    if name.len() > LONGEST_NAME {
        return Err(contract(format!("the name of a method is longer than {LONGEST_NAME} bytes")));
    }
    let method = String::from_utf8(name).map_err(|_| contract("the name of a method is not UTF-8"))?;
    c.data_mut().call = Some(NewCall {
        callee,
        method,
        arg: Vec::new(),
        reply: closure(reply, reply_environment),
        reject: closure(reject, reject_environment),
        cleanup: None,
        timeout: None,
    });
    Ok(())
}

fn closure(function: i32, environment: i32) -> Closure {
    Closure { function: function.cast_unsigned(), environment: environment.cast_unsigned() }
}

fn nothing() -> wasmi::Error {
    contract("no call is under construction")
}

fn under_construction<'c>(canister: &'c mut Canister<'_>) -> Done<&'c mut NewCall> {
    canister.data_mut().call.as_mut().ok_or_else(nothing)
}
