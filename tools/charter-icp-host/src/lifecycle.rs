//! Implements [`Host`] for [`LocalHost`]: ingress messages, and the lifecycle of canisters.

use std::time::Duration;

use candid::Principal;

use crate::canister::{Canister, PutError, Status};
use crate::code::Code;
use crate::entry::Entry;
use crate::host::{CallId, Host, Inner};
use crate::local::{LocalHost, Task, said_answer};
use crate::reject::{Answer, Reject, RejectCode};
use crate::run::{Call, Target};

/// Maximum number of steps while waiting, in case canisters call each other forever.
const MAX_STEPS: usize = 100_000;

/// How to install a module.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Install,
    Reinstall,
    Upgrade,
}

impl LocalHost {
    fn controlled(&mut self, canister: Principal, sender: Principal, what: &str) -> Result<&mut Canister, Reject> {
        let found = self
            .canisters
            .get_mut(&canister)
            .ok_or_else(|| Reject::new(301, format!("Canister {canister} not found.")))?;
        if !found.controllers.contains(&sender) {
            return Err(Reject::new(
                512,
                format!("Only controllers of canister {canister} can {what} it, and {sender} is not one."),
            ));
        }
        Ok(found)
    }

    fn put(
        &mut self,
        canister: Principal,
        sender: Principal,
        module: &[u8],
        arg: &[u8],
        how: How,
    ) -> Result<(), Reject> {
        let (now, limits) = (self.now, self.limits);
        let found = self.controlled(canister, sender, "install code in")?;
        match (how, found.code().is_some()) {
            (How::Install, true) => {
                return Err(Reject::new(514, format!("Canister {canister} is not empty: upgrade or reinstall it.")));
            }
            (How::Upgrade, false) => {
                return Err(Reject::new(
                    537,
                    format!("Canister {canister} contains no Wasm module that could be upgraded."),
                ));
            }
            _ => {}
        }
        let invalid = |why: &dyn std::fmt::Display| {
            Reject::new(505, format!("Error from Canister {canister}: Canister's Wasm module is not valid: {why}."))
        };
        let code = Code::load(module).map_err(|bad| invalid(&bad))?;
        let Some(found) = self.canisters.get_mut(&canister) else {
            return Err(invalid(&"no canister"));
        };
        let faults = &mut self.faults;
        let put = found.put(&code, how == How::Upgrade, |entry, spent| {
            let limit = limits.of(entry).saturating_sub(spent);
            Call {
                entry,
                target: Target::Export(Code::hook(entry).to_string()),
                arg: if entry == Entry::PreUpgrade { Vec::new() } else { arg.to_vec() },
                caller: sender,
                method: String::new(),
                reject: None,
                deadline: 0,
                answerable: false,
                before: 0,
                time: now,
                limit: faults.limit(canister, entry, "", limit),
            }
        });
        put.map_err(|broken| match broken {
            PutError::Module(bad) => invalid(&bad),
            PutError::Trap(trap) => trap.reject(canister),
        })
    }
}

impl Host for LocalHost {
    fn name(&self) -> &'static str {
        "charter-icp-host"
    }

    fn create(&mut self, controllers: &[Principal]) -> Result<Principal, Reject> {
        let id = self.next_canister();
        self.canisters.insert(id, Canister::new(id, controllers.to_vec()));
        Ok(id)
    }

    fn install(&mut self, canister: Principal, sender: Principal, module: &[u8], arg: &[u8]) -> Result<(), Reject> {
        self.put(canister, sender, module, arg, How::Install)
    }

    fn reinstall(&mut self, canister: Principal, sender: Principal, module: &[u8], arg: &[u8]) -> Result<(), Reject> {
        self.put(canister, sender, module, arg, How::Reinstall)
    }

    fn upgrade(&mut self, canister: Principal, sender: Principal, module: &[u8], arg: &[u8]) -> Result<(), Reject> {
        self.put(canister, sender, module, arg, How::Upgrade)
    }

    fn query(&mut self, canister: Principal, sender: Principal, method: &str, arg: &[u8]) -> Answer {
        let kind = self.admit_query(canister, method)?;
        let ran = self.look(canister, Entry::Query, kind.export(method), sender, method, arg);
        match ran.result {
            Ok(effects) => effects.answer.map_or_else(
                || {
                    Err(Reject::new(
                        506,
                        format!("Error from Canister {canister}: Canister did not reply to the call."),
                    ))
                },
                said_answer,
            ),
            Err(trap) => Err(trap.reject(canister)),
        }
    }

    fn submit(&mut self, canister: Principal, sender: Principal, method: &str, arg: &[u8]) -> Result<CallId, Reject> {
        self.inspect(canister, sender, method, arg)?;
        let call = self.next_id();
        self.answers.insert(call, None);
        self.queue.push_back(Task::Message {
            call,
            to: canister,
            caller: sender,
            method: method.to_string(),
            arg: arg.to_vec(),
        });
        Ok(CallId(Inner::Local(call)))
    }

    fn answer(&mut self, call: &CallId) -> Option<Answer> {
        match &call.0 {
            Inner::Local(call) => self.answers.get(call).cloned().flatten(),
            #[cfg(feature = "pocket-ic")]
            Inner::Pocket(_) => None,
        }
    }

    fn await_call(&mut self, call: &CallId) -> Answer {
        for _ in 0..MAX_STEPS {
            if let Some(answer) = self.answer(call) {
                return answer;
            }
            if self.step().is_none() {
                return Err(Reject {
                    code: RejectCode::SysUnknown,
                    error: 600,
                    message: "Nothing is left to do, and the message is not answered: it waits for time to pass, or belongs to another host.".to_string(),
                });
            }
        }
        Err(Reject::new(600, format!("The message is not answered after {MAX_STEPS} steps.")))
    }

    fn tick(&mut self) {
        self.step();
    }

    fn settle(&mut self) {
        for _ in 0..MAX_STEPS {
            if self.step().is_none() {
                return;
            }
        }
    }

    fn advance(&mut self, time: Duration) {
        self.pass(time);
    }

    fn now(&mut self) -> Duration {
        Duration::from_nanos(self.now)
    }

    fn stop(&mut self, canister: Principal, sender: Principal) -> Result<(), Reject> {
        let found = self.controlled(canister, sender, "stop")?;
        if found.status == Status::Running {
            found.status = Status::Stopping;
            found.version = found.version.saturating_add(1);
        }
        for _ in 0..MAX_STEPS {
            let Some(found) = self.canisters.get_mut(&canister) else {
                break;
            };
            if found.contexts.is_empty() {
                if found.status != Status::Stopped {
                    found.status = Status::Stopped;
                    found.version = found.version.saturating_add(1);
                }
                return Ok(());
            }
            if self.step().is_none() {
                break;
            }
        }
        let open = self.open_calls(canister);
        Err(Reject::new(
            206,
            format!("Canister {canister} is still stopping: {open} of its calls wait for answers that do not arrive."),
        ))
    }

    fn start(&mut self, canister: Principal, sender: Principal) -> Result<(), Reject> {
        let found = self.controlled(canister, sender, "start")?;
        found.status = Status::Running;
        found.version = found.version.saturating_add(1);
        Ok(())
    }

    fn controllers(&mut self, canister: Principal) -> Result<Vec<Principal>, Reject> {
        let found =
            self.canisters.get(&canister).ok_or_else(|| Reject::new(301, format!("Canister {canister} not found.")))?;
        Ok(found.controllers.clone())
    }

    fn set_controllers(
        &mut self,
        canister: Principal,
        sender: Principal,
        controllers: &[Principal],
    ) -> Result<(), Reject> {
        let found = self.controlled(canister, sender, "change the controllers of")?;
        found.controllers = controllers.to_vec();
        found.version = found.version.saturating_add(1);
        Ok(())
    }
}
