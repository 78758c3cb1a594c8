//! The message and its answer: `msg_*`, `accept_message`.

use wasmi::Linker;

use super::{Canister, Done, LARGE, SMALL, contract, copy, enter, input, put_u128, reply_limit, size, take};
use crate::entry::{Entries, Entry};
use crate::env::Env;
use crate::run::{Input, Said};

pub(super) fn define(linker: &mut Linker<Env>) -> Result<(), wasmi::Error> {
    linker.func_wrap("ic0", "msg_arg_data_size", |mut c: Canister<'_>| -> Done<i32> {
        enter(&mut c, "msg_arg_data_size", Entries::ARGUMENT, SMALL)?;
        Ok(size(input(&c)?.call.arg.len()))
    })?;
    linker.func_wrap("ic0", "msg_arg_data_copy", |mut c: Canister<'_>, to: i32, offset: i32, length: i32| -> Done {
        enter(&mut c, "msg_arg_data_copy", Entries::ARGUMENT, SMALL)?;
        copy(&mut c, (to, offset, length), |input| Ok(&input.call.arg))
    })?;
    linker.func_wrap("ic0", "msg_caller_size", |mut c: Canister<'_>| -> Done<i32> {
        enter(&mut c, "msg_caller_size", Entries::ANY, SMALL)?;
        Ok(size(input(&c)?.call.caller.as_slice().len()))
    })?;
    linker.func_wrap("ic0", "msg_caller_copy", |mut c: Canister<'_>, to: i32, offset: i32, length: i32| -> Done {
        enter(&mut c, "msg_caller_copy", Entries::ANY, SMALL)?;
        copy(&mut c, (to, offset, length), |input| Ok(input.call.caller.as_slice()))
    })?;
    // No caller is authenticated by a canister signature, so the value is empty.
    for name in ["msg_caller_info_data_size", "msg_caller_info_signer_size"] {
        linker.func_wrap("ic0", name, move |mut c: Canister<'_>| -> Done<i32> {
            enter(&mut c, name, Entries::CALLER_INFO, SMALL)?;
            Ok(0)
        })?;
    }
    for name in ["msg_caller_info_data_copy", "msg_caller_info_signer_copy"] {
        linker.func_wrap("ic0", name, move |mut c: Canister<'_>, to: i32, offset: i32, length: i32| -> Done {
            enter(&mut c, name, Entries::CALLER_INFO, SMALL)?;
            copy(&mut c, (to, offset, length), |_| Ok(&[]))
        })?;
    }
    linker.func_wrap("ic0", "msg_reject_code", |mut c: Canister<'_>| -> Done<i32> {
        enter(&mut c, "msg_reject_code", Entries::REJECT_CODE, SMALL)?;
        Ok(input(&c)?.call.reject.as_ref().map_or(0, |(code, _)| code.cast_signed()))
    })?;
    linker.func_wrap("ic0", "msg_reject_msg_size", |mut c: Canister<'_>| -> Done<i32> {
        enter(&mut c, "msg_reject_msg_size", Entries::REJECT_MESSAGE, SMALL)?;
        Ok(size(reject_message(input(&c)?)?.len()))
    })?;
    linker.func_wrap(
        "ic0",
        "msg_reject_msg_copy",
        |mut c: Canister<'_>, to: i32, offset: i32, length: i32| -> Done {
            enter(&mut c, "msg_reject_msg_copy", Entries::REJECT_MESSAGE, SMALL)?;
            copy(&mut c, (to, offset, length), reject_message)
        },
    )?;
    linker.func_wrap("ic0", "msg_deadline", |mut c: Canister<'_>| -> Done<i64> {
        enter(&mut c, "msg_deadline", Entries::ANSWER, SMALL)?;
        Ok(input(&c)?.call.deadline.cast_signed())
    })?;
    linker.func_wrap("ic0", "msg_reply_data_append", |mut c: Canister<'_>, from: i32, length: i32| -> Done {
        enter(&mut c, "msg_reply_data_append", Entries::ANSWER, LARGE)?;
        unanswered(&c)?;
        let limit = reply_limit(input(&c)?.call.entry);
        let bytes = take(&mut c, from, length)?;
        let reply = &mut c.data_mut().reply;
        if reply.len().saturating_add(bytes.len()) > limit {
            return Err(contract(format!("the reply is larger than {limit} bytes")));
        }
        reply.extend(bytes);
        Ok(())
    })?;
    linker.func_wrap("ic0", "msg_reply", |mut c: Canister<'_>| -> Done {
        enter(&mut c, "msg_reply", Entries::ANSWER, LARGE)?;
        unanswered(&c)?;
        let env = c.data_mut();
        env.effects.answer = Some(Said::Reply(std::mem::take(&mut env.reply)));
        Ok(())
    })?;
    linker.func_wrap("ic0", "msg_reject", |mut c: Canister<'_>, from: i32, length: i32| -> Done {
        enter(&mut c, "msg_reject", Entries::ANSWER, LARGE)?;
        unanswered(&c)?;
        let message =
            String::from_utf8(take(&mut c, from, length)?).map_err(|_| contract("the reject message is not UTF-8"))?;
        let env = c.data_mut();
        env.reply.clear();
        env.effects.answer = Some(Said::Reject(message));
        Ok(())
    })?;
    cycles(linker)?;
    inspection(linker)
}

/// Messages carry no cycles.
fn cycles(linker: &mut Linker<Env>) -> Result<(), wasmi::Error> {
    for (name, entries) in [("msg_cycles_available", Entries::CYCLES), ("msg_cycles_refunded", Entries::REFUND)] {
        linker.func_wrap("ic0", name, move |mut c: Canister<'_>| -> Done<i64> {
            enter(&mut c, name, entries, LARGE)?;
            Ok(0)
        })?;
    }
    for (name, entries) in [("msg_cycles_available128", Entries::CYCLES), ("msg_cycles_refunded128", Entries::REFUND)] {
        linker.func_wrap("ic0", name, move |mut c: Canister<'_>, to: i32| -> Done {
            enter(&mut c, name, entries, LARGE)?;
            put_u128(&mut c, to, 0)
        })?;
    }
    linker.func_wrap("ic0", "msg_cycles_accept", |mut c: Canister<'_>, _: i64| -> Done<i64> {
        enter(&mut c, "msg_cycles_accept", Entries::CYCLES, LARGE)?;
        Ok(0)
    })?;
    for (name, entries) in [("msg_cycles_accept128", Entries::CYCLES), ("cycles_burn128", Entries::REPLICATED)] {
        linker.func_wrap("ic0", name, move |mut c: Canister<'_>, _: i64, _: i64, to: i32| -> Done {
            enter(&mut c, name, entries, LARGE)?;
            put_u128(&mut c, to, 0)
        })?;
    }
    Ok(())
}

fn inspection(linker: &mut Linker<Env>) -> Result<(), wasmi::Error> {
    linker.func_wrap("ic0", "msg_method_name_size", |mut c: Canister<'_>| -> Done<i32> {
        enter(&mut c, "msg_method_name_size", Entries::INSPECT, SMALL)?;
        Ok(size(input(&c)?.call.method.len()))
    })?;
    linker.func_wrap(
        "ic0",
        "msg_method_name_copy",
        |mut c: Canister<'_>, to: i32, offset: i32, length: i32| -> Done {
            enter(&mut c, "msg_method_name_copy", Entries::INSPECT, SMALL)?;
            copy(&mut c, (to, offset, length), |input| Ok(input.call.method.as_bytes()))
        },
    )?;
    linker.func_wrap("ic0", "accept_message", |mut c: Canister<'_>| -> Done {
        enter(&mut c, "accept_message", Entries::INSPECT, LARGE)?;
        if std::mem::replace(&mut c.data_mut().effects.accepted, true) {
            return Err(contract("the message is accepted twice"));
        }
        Ok(())
    })?;
    Ok(())
}

fn reject_message(input: &Input) -> Done<&[u8]> {
    match (&input.call.reject, input.call.entry) {
        (Some((_, message)), Entry::Reject) => Ok(message.as_bytes()),
        _ => Err(contract("there is no reject message")),
    }
}

/// Checks that the canister may still answer.
fn unanswered(canister: &Canister<'_>) -> Done {
    if input(canister)?.call.answerable && canister.data().effects.answer.is_none() {
        return Ok(());
    }
    Err(contract("the call has been answered already, or nobody is waiting for an answer"))
}
