//! All other functions: identity, time, timer, counters, certified data, costs, environment
//! variables, printing, trapping.

use candid::Principal;
use wasmi::Linker;

use super::{Canister, Done, LARGE, SMALL, contract, copy, enter, input, number, put_u128, size, take};
use crate::entry::{Entries, Entry};
use crate::env::Env;
use crate::run::{Facts, Input, Trap};

/// The constant cycle balance of every canister: 100 T.
const CYCLES: u64 = 100_000_000_000_000;
/// The certificate of queries, a placeholder that certifies nothing.
const CERTIFICATE: &[u8] = b"no certificate: charter-icp-host";
/// The id of the only subnet.
const SUBNET: &[u8] = &[0xfe, 0xfe, 0xfe];
/// The root key, a placeholder: nothing is signed with it.
const ROOT_KEY: &[u8] = b"no key: charter-icp-host";

pub(super) fn define(linker: &mut Linker<Env>) -> Result<(), wasmi::Error> {
    values(linker)?;
    balance(linker)?;
    counters(linker)?;
    variables(linker)?;
    linker.func_wrap("ic0", "certified_data_set", |mut c: Canister<'_>, from: i32, length: i32| -> Done {
        enter(&mut c, "certified_data_set", Entries::CERTIFY, LARGE)?;
        if number(length) > 32 {
            return Err(contract("certified data is longer than 32 bytes"));
        }
        let bytes = take(&mut c, from, length)?;
        c.data_mut().effects.certified = Some(bytes);
        Ok(())
    })?;
    linker.func_wrap("ic0", "data_certificate_present", |mut c: Canister<'_>| -> Done<i32> {
        enter(&mut c, "data_certificate_present", Entries::ANY, SMALL)?;
        Ok(i32::from(input(&c)?.call.entry == Entry::Query))
    })?;
    linker.func_wrap("ic0", "is_controller", |mut c: Canister<'_>, from: i32, length: i32| -> Done<i32> {
        enter(&mut c, "is_controller", Entries::ALL, LARGE)?;
        let bytes = take(&mut c, from, length)?;
        let who = Principal::try_from_slice(&bytes)
            .map_err(|_| contract("the argument of `is_controller` is not a principal"))?;
        Ok(i32::from(input(&c)?.facts.controllers.contains(&who)))
    })?;
    linker.func_wrap("ic0", "in_replicated_execution", |mut c: Canister<'_>| -> Done<i32> {
        enter(&mut c, "in_replicated_execution", Entries::ALL, SMALL)?;
        Ok(i32::from(!matches!(input(&c)?.call.entry, Entry::Query | Entry::Inspect)))
    })?;
    linker.func_wrap("ic0", "debug_print", |mut c: Canister<'_>, from: i32, length: i32| -> Done {
        enter(&mut c, "debug_print", Entries::ALL, SMALL)?;
        let text = String::from_utf8_lossy(&take(&mut c, from, length)?).into_owned();
        c.data_mut().printed.push(text);
        Ok(())
    })?;
    linker.func_wrap("ic0", "trap", |mut c: Canister<'_>, from: i32, length: i32| -> Done {
        enter(&mut c, "trap", Entries::ALL, SMALL)?;
        let text = String::from_utf8_lossy(&take(&mut c, from, length)?).into_owned();
        Err(wasmi::Error::host(Trap::Called(text)))
    })?;
    Ok(())
}

/// Defines functions for values with a `_size` and a `_copy`, and for numbers.
fn values(linker: &mut Linker<Env>) -> Result<(), wasmi::Error> {
    type Value = for<'e> fn(&'e Input) -> &'e [u8];
    let values: [(&'static str, &'static str, Entries, Value); 4] = [
        ("canister_self_size", "canister_self_copy", Entries::ANY, |input| input.facts.id.as_slice()),
        ("subnet_self_size", "subnet_self_copy", Entries::ANY, |_| SUBNET),
        ("root_key_size", "root_key_copy", Entries::REPLICATED, |_| ROOT_KEY),
        ("data_certificate_size", "data_certificate_copy", Entries::CERTIFICATE, |_| CERTIFICATE),
    ];
    for (size_name, copy_name, entries, value) in values {
        linker.func_wrap("ic0", size_name, move |mut c: Canister<'_>| -> Done<i32> {
            enter(&mut c, size_name, entries, SMALL)?;
            Ok(size(value(input(&c)?).len()))
        })?;
        linker.func_wrap("ic0", copy_name, move |mut c: Canister<'_>, to: i32, offset: i32, length: i32| -> Done {
            enter(&mut c, copy_name, entries, SMALL)?;
            copy(&mut c, (to, offset, length), |input| Ok(value(input)))
        })?;
    }
    linker.func_wrap("ic0", "subnet_self_node_count", |mut c: Canister<'_>| -> Done<i32> {
        enter(&mut c, "subnet_self_node_count", Entries::ANY, SMALL)?;
        Ok(1)
    })?;
    linker.func_wrap("ic0", "canister_status", |mut c: Canister<'_>| -> Done<i32> {
        enter(&mut c, "canister_status", Entries::ANY, SMALL)?;
        Ok(input(&c)?.facts.status.cast_signed())
    })?;
    linker.func_wrap("ic0", "canister_version", |mut c: Canister<'_>| -> Done<i64> {
        enter(&mut c, "canister_version", Entries::ANY, SMALL)?;
        Ok(input(&c)?.facts.version.cast_signed())
    })?;
    linker.func_wrap("ic0", "time", |mut c: Canister<'_>| -> Done<i64> {
        enter(&mut c, "time", Entries::ANY, LARGE)?;
        Ok(input(&c)?.call.time.cast_signed())
    })?;
    linker.func_wrap("ic0", "global_timer_set", |mut c: Canister<'_>, when: i64| -> Done<i64> {
        enter(&mut c, "global_timer_set", Entries::TIMER, LARGE)?;
        let before = input(&c)?.facts.timer;
        let before = c.data_mut().effects.timer.replace(when.cast_unsigned()).unwrap_or(before);
        Ok(before.cast_signed())
    })?;
    Ok(())
}

/// Defines functions for cycles and costs.
fn balance(linker: &mut Linker<Env>) -> Result<(), wasmi::Error> {
    linker.func_wrap("ic0", "canister_cycle_balance", |mut c: Canister<'_>| -> Done<i64> {
        enter(&mut c, "canister_cycle_balance", Entries::ANY, LARGE)?;
        Ok(CYCLES.cast_signed())
    })?;
    for name in ["canister_cycle_balance128", "canister_liquid_cycle_balance128"] {
        linker.func_wrap("ic0", name, move |mut c: Canister<'_>, to: i32| -> Done {
            enter(&mut c, name, Entries::ANY, LARGE)?;
            put_u128(&mut c, to, u128::from(CYCLES))
        })?;
    }
    for name in ["cost_call", "cost_http_request"] {
        linker.func_wrap("ic0", name, move |mut c: Canister<'_>, _: i64, _: i64, to: i32| -> Done {
            enter(&mut c, name, Entries::ALL, LARGE)?;
            put_u128(&mut c, to, 0)
        })?;
    }
    linker.func_wrap("ic0", "cost_create_canister", |mut c: Canister<'_>, to: i32| -> Done {
        enter(&mut c, "cost_create_canister", Entries::ALL, LARGE)?;
        put_u128(&mut c, to, 0)
    })?;
    linker.func_wrap(
        "ic0",
        "cost_http_request_v2",
        |mut c: Canister<'_>, from: i32, length: i32, to: i32| -> Done {
            enter(&mut c, "cost_http_request_v2", Entries::ALL, LARGE)?;
            take(&mut c, from, length)?;
            put_u128(&mut c, to, 0)
        },
    )?;
    for name in ["cost_sign_with_ecdsa", "cost_sign_with_schnorr", "cost_vetkd_derive_key"] {
        linker.func_wrap(
            "ic0",
            name,
            move |mut c: Canister<'_>, from: i32, length: i32, _: i32, _: i32| -> Done<i32> {
                enter(&mut c, name, Entries::ALL, LARGE)?;
                take(&mut c, from, length)?;
                // The host has no keys.
                Ok(2)
            },
        )?;
    }
    Ok(())
}

fn counters(linker: &mut Linker<Env>) -> Result<(), wasmi::Error> {
    linker.func_wrap("ic0", "performance_counter", |mut c: Canister<'_>, kind: i32| -> Done<i64> {
        enter(&mut c, "performance_counter", Entries::ALL, SMALL)?;
        let left = c.get_fuel()?;
        let input = input(&c)?;
        let now = input.call.limit.saturating_sub(left);
        match kind {
            0 => Ok(now.cast_signed()),
            1 => Ok(now.saturating_add(input.call.before).cast_signed()),
            other => Err(contract(format!("there is no performance counter {other}"))),
        }
    })?;
    Ok(())
}

fn variables(linker: &mut Linker<Env>) -> Result<(), wasmi::Error> {
    fn name_at(facts: &Facts, index: i32) -> Done<&[u8]> {
        let name = facts.variables.keys().nth(number(index));
        name.map(|name| name.as_bytes()).ok_or_else(|| contract(format!("there is no environment variable {index}")))
    }
    fn value_of<'f>(facts: &'f Facts, name: &str) -> Done<&'f [u8]> {
        let value = facts.variables.get(name);
        value
            .map(|value| value.as_bytes())
            .ok_or_else(|| contract(format!("there is no environment variable `{name}`")))
    }
    fn asked(c: &mut Canister<'_>, from: i32, length: i32) -> Done<String> {
        String::from_utf8(take(c, from, length)?)
            .map_err(|_| contract("the name of an environment variable is not UTF-8"))
    }
    linker.func_wrap("ic0", "env_var_count", |mut c: Canister<'_>| -> Done<i32> {
        enter(&mut c, "env_var_count", Entries::ANY, SMALL)?;
        Ok(size(input(&c)?.facts.variables.len()))
    })?;
    linker.func_wrap("ic0", "env_var_name_size", |mut c: Canister<'_>, index: i32| -> Done<i32> {
        enter(&mut c, "env_var_name_size", Entries::ANY, SMALL)?;
        Ok(size(name_at(&input(&c)?.facts, index)?.len()))
    })?;
    linker.func_wrap(
        "ic0",
        "env_var_name_copy",
        |mut c: Canister<'_>, index: i32, to: i32, offset: i32, length: i32| -> Done {
            enter(&mut c, "env_var_name_copy", Entries::ANY, SMALL)?;
            copy(&mut c, (to, offset, length), |input| name_at(&input.facts, index))
        },
    )?;
    linker.func_wrap("ic0", "env_var_name_exists", |mut c: Canister<'_>, from: i32, length: i32| -> Done<i32> {
        enter(&mut c, "env_var_name_exists", Entries::ANY, SMALL)?;
        let name = asked(&mut c, from, length)?;
        Ok(i32::from(input(&c)?.facts.variables.contains_key(&name)))
    })?;
    linker.func_wrap("ic0", "env_var_value_size", |mut c: Canister<'_>, from: i32, length: i32| -> Done<i32> {
        enter(&mut c, "env_var_value_size", Entries::ANY, SMALL)?;
        let name = asked(&mut c, from, length)?;
        Ok(size(value_of(&input(&c)?.facts, &name)?.len()))
    })?;
    linker.func_wrap(
        "ic0",
        "env_var_value_copy",
        |mut c: Canister<'_>, from: i32, name_length: i32, to: i32, offset: i32, length: i32| -> Done {
            enter(&mut c, "env_var_value_copy", Entries::ANY, SMALL)?;
            let name = asked(&mut c, from, name_length)?;
            copy(&mut c, (to, offset, length), |input| value_of(&input.facts, &name))
        },
    )?;
    Ok(())
}
