//! Messages in transit: delivery, execution, answers and calls.

use candid::Principal;

use super::{LocalHost, Step, Task, said_answer};
use crate::canister::{Callback, Canister, Context, Origin, Status};
use crate::code::{Code, Method};
use crate::entry::Entry;
use crate::reject::{Answer, Reject};
use crate::run::{Call, NewCall, Ran, Target};

impl LocalHost {
    /// Executes an entry point of a canister and commits its changes, unless it is a query.
    pub(super) fn run(
        &mut self,
        id: Principal,
        entry: Entry,
        target: Target,
        context: &Context,
        arg: Vec<u8>,
        reject: Option<(u32, String)>,
    ) -> Ran {
        let limit = self.limits.of(entry);
        let limit = self.faults.limit(id, entry, &context.method, limit);
        let call = Call {
            entry,
            target,
            arg,
            caller: context.caller,
            method: context.method.clone(),
            reject,
            deadline: context.deadline,
            answerable: !context.answered && context.origin != Origin::System,
            before: context.instructions,
            time: self.now,
            limit,
        };
        match self.canisters.get_mut(&id) {
            Some(canister) if entry == Entry::ReplicatedQuery => canister.look(call),
            Some(canister) => canister.execute(call),
            None => crate::canister::empty(),
        }
    }

    /// Checks that a canister can execute a message; returns the kind of the method.
    pub(super) fn admit(&self, to: Principal, method: &str) -> Result<Method, Reject> {
        let canister = self.canisters.get(&to).ok_or_else(|| Reject::new(301, format!("Canister {to} not found.")))?;
        match canister.status {
            Status::Running => {}
            Status::Stopping => {
                return Err(Reject::new(509, format!("Canister {to} is stopping.")));
            }
            Status::Stopped => return Err(Reject::new(508, format!("Canister {to} is stopped."))),
        }
        let code = canister.code().ok_or_else(|| {
            Reject::new(537, format!("Error from Canister {to}: Attempted to execute a message, but the canister contains no Wasm module."))
        })?;
        code.method(method).ok_or_else(|| {
            Reject::new(536, format!("Error from Canister {to}: Canister has no update method '{method}'."))
        })
    }

    /// Delivers a message or a call to its canister.
    pub(super) fn begin(
        &mut self,
        to: Principal,
        origin: Origin,
        caller: Principal,
        method: String,
        arg: Vec<u8>,
        deadline: u64,
    ) -> Step {
        let admitted = self.admit(to, &method).and_then(|kind| match kind {
            Method::Update => Ok((Entry::Update, kind)),
            Method::Query => Ok((Entry::ReplicatedQuery, kind)),
            Method::CompositeQuery => Err(Reject::new(
                527,
                format!("Error from Canister {to}: composite query '{method}' cannot be called in replicated mode."),
            )),
        });
        let (entry, kind) = match admitted {
            Ok(admitted) => admitted,
            Err(reject) => {
                self.deliver(origin, Err(reject.clone()));
                return Step { canister: to, entry: Entry::Update, method, instructions: 0, failed: Some(reject) };
            }
        };
        let target = Target::Export(kind.export(&method));
        let context = Context { origin, caller, method, answered: false, outstanding: 0, instructions: 0, deadline };
        let ran = self.run(to, entry, target, &context, arg, None);
        self.after(to, entry, None, context, ran)
    }

    /// Delivers the answer to a call to the calling canister.
    pub(super) fn respond(&mut self, to: Principal, id: u64, answer: Answer) -> Option<Step> {
        let canister = self.canisters.get_mut(&to)?;
        let callback = canister.callbacks.remove(&id)?;
        let mut context = canister.contexts.remove(&callback.context)?;
        context.outstanding = context.outstanding.saturating_sub(1);
        let (entry, closure, arg, reject) = match answer {
            Ok(reply) => (Entry::Reply, callback.reply, reply, None),
            Err(reject) => (Entry::Reject, callback.reject, Vec::new(), Some((reject.code as u32, reject.message))),
        };
        let mut ran = self.run(to, entry, Target::Table(closure), &context, arg, reject.clone());
        if ran.result.is_err()
            && let Some(cleanup) = callback.cleanup
        {
            let cleaned = self.run(to, Entry::Cleanup, Target::Table(cleanup), &context, Vec::new(), reject);
            ran.instructions = ran.instructions.saturating_add(cleaned.instructions);
        }
        Some(self.after(to, entry, Some(callback.context), context, ran))
    }

    /// Processes the result of an execution: sends its answer and its calls, or its failure as the
    /// answer.
    pub(super) fn after(
        &mut self,
        id: Principal,
        entry: Entry,
        known: Option<u64>,
        mut context: Context,
        ran: Ran,
    ) -> Step {
        context.instructions = context.instructions.saturating_add(ran.instructions);
        let method = context.method.clone();
        let owed = context.origin != Origin::System;
        let context_id = known.unwrap_or_else(|| self.next_id());
        let mut failed = None;
        match ran.result {
            Ok(effects) => {
                if let Some(said) = effects.answer {
                    context.answered = true;
                    self.deliver(context.origin, said_answer(said));
                }
                for call in effects.calls {
                    self.send(id, context_id, call);
                    context.outstanding = context.outstanding.saturating_add(1);
                }
                if owed && context.outstanding == 0 && !context.answered {
                    let reject =
                        Reject::new(506, format!("Error from Canister {id}: Canister did not reply to the call."));
                    self.deliver(context.origin, Err(reject));
                }
            }
            Err(trap) => {
                let reject = trap.reject(id);
                if owed && context.outstanding == 0 && !context.answered {
                    self.deliver(context.origin, Err(reject.clone()));
                }
                failed = Some(reject);
            }
        }
        if context.outstanding > 0
            && let Some(canister) = self.canisters.get_mut(&id)
        {
            canister.contexts.insert(context_id, context);
        }
        Step { canister: id, entry, method, instructions: ran.instructions, failed }
    }

    /// Queues a call.
    pub(super) fn send(&mut self, from: Principal, context: u64, call: NewCall) {
        let callback = self.next_id();
        let deadline =
            call.timeout.map_or(0, |seconds| self.now.saturating_add(u64::from(seconds).saturating_mul(1_000_000_000)));
        if let Some(canister) = self.canisters.get_mut(&from) {
            let waiting = Callback {
                context,
                reply: call.reply,
                reject: call.reject,
                cleanup: call.cleanup,
                deadline,
                answered: false,
            };
            canister.callbacks.insert(callback, waiting);
        }
        let NewCall { callee, method, arg, .. } = call;
        self.queue.push_back(Task::Request { from, callback, to: callee, method, arg, deadline });
    }

    /// Queues an answer, or drops it if the caller no longer waits.
    pub(super) fn deliver(&mut self, origin: Origin, answer: Answer) {
        match origin {
            Origin::User(call) => {
                self.answers.insert(call, Some(answer));
            }
            Origin::Canister(to, callback) => {
                let waiting = self.canisters.get_mut(&to).and_then(|canister| canister.callbacks.get_mut(&callback));
                if let Some(waiting) = waiting
                    && !std::mem::replace(&mut waiting.answered, true)
                {
                    self.queue.push_back(Task::Response { to, callback, answer });
                }
            }
            Origin::System => {}
        }
    }

    /// Executes a query or an inspection on a copy.
    pub(crate) fn look(
        &mut self,
        to: Principal,
        entry: Entry,
        export: String,
        caller: Principal,
        method: &str,
        arg: &[u8],
    ) -> Ran {
        let limit = self.limits.of(entry);
        let limit = self.faults.limit(to, entry, method, limit);
        let call = Call {
            entry,
            target: Target::Export(export),
            arg: arg.to_vec(),
            caller,
            method: method.to_string(),
            reject: None,
            deadline: 0,
            answerable: entry == Entry::Query,
            before: 0,
            time: self.now,
            limit,
        };
        match self.canisters.get_mut(&to) {
            Some(canister) => canister.look(call),
            None => crate::canister::empty(),
        }
    }

    /// Checks that the canister is running and its inspection accepts the message.
    pub(crate) fn inspect(&mut self, to: Principal, caller: Principal, method: &str, arg: &[u8]) -> Result<(), Reject> {
        match self.admit(to, method) {
            // The answer reports a missing method.
            Ok(_) | Err(Reject { error: 536, .. }) => {}
            Err(reject) => return Err(reject),
        }
        let hook = Code::hook(Entry::Inspect);
        if !self.canisters.get(&to).and_then(Canister::code).is_some_and(|code| code.has(hook)) {
            return Ok(());
        }
        match self.look(to, Entry::Inspect, hook.to_string(), caller, method, arg).result {
            Ok(effects) if effects.accepted => Ok(()),
            Ok(_) => {
                Err(Reject::new(406, format!("Canister {to} rejected the message: it did not call `accept_message`.")))
            }
            Err(trap) => Err(trap.reject(to)),
        }
    }

    /// Checks that a canister can execute a query; returns the kind of the method.
    pub(crate) fn admit_query(&self, to: Principal, method: &str) -> Result<Method, Reject> {
        match self.admit(to, method) {
            Ok(Method::Update) | Err(Reject { error: 536, .. }) => {
                Err(Reject::new(536, format!("Error from Canister {to}: Canister has no query method '{method}'.")))
            }
            other => other,
        }
    }
}
