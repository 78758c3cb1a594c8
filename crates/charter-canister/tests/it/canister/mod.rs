//! The real canister: its WebAssembly, executed message by message by the test host.

mod age;
mod authority;
mod broken;
mod ids;
mod same;
mod turns;

use std::ops::DerefMut;
use std::sync::OnceLock;
use std::time::Duration;

use candid::utils::{ArgumentEncoder, encode_args};
use candid::{CandidType, Principal};
use charter_canister::api::{
    Check, Error, Events, ExportArgs, ExportPart, InitArgs, Page, Projection, Receipt, Refusals, Runtime, Soul,
    TurnEnd, Turns, TurnsQuery, WakeArgs,
};
use charter_icp_host::{CallError, CallId, Host, LocalHost, Reject};
use serde::de::DeserializeOwned;

/// Returns the module, which is built once.
fn module() -> &'static [u8] {
    static MODULE: OnceLock<Vec<u8>> = OnceLock::new();
    MODULE.get_or_init(|| {
        let built = charter_canister_build::build("charter-canister");
        let built = built.unwrap_or_else(|e| panic!("{e}"));
        assert!(
            built.wasm_gz.len() < 2 << 20,
            "an install message holds 2 MiB, the module has {}",
            built.wasm_gz.len()
        );
        println!("{} bytes gzipped", built.wasm_gz.len());
        built.wasm
    })
}

fn owner() -> Principal {
    Principal::from_slice(&[1, 2, 3])
}

fn stranger() -> Principal {
    Principal::from_slice(&[9, 9])
}

/// An installed automaton on its own host or on a borrowed one.
struct Canister<H: DerefMut<Target: Host>> {
    host: H,
    id: Principal,
}

type Local = Canister<Box<LocalHost>>;

impl Local {
    fn new(args: Option<InitArgs>) -> Local {
        Canister::ready(Box::new(LocalHost::new()), args)
    }
}

impl<H: DerefMut<Target: Host>> Canister<H> {
    fn ready(host: H, args: Option<InitArgs>) -> Canister<H> {
        let mut made = Canister::installed(host, args);
        made.host.settle();
        made
    }

    fn installed(mut host: H, args: Option<InitArgs>) -> Canister<H> {
        let id = host.create(&[owner()]).unwrap();
        let args = encode_args((args,)).unwrap();
        host.install(id, owner(), module(), &args).unwrap();
        Canister { host, id }
    }

    fn call<R: CandidType + DeserializeOwned>(&mut self, method: &str, args: impl ArgumentEncoder) -> R {
        self.call_as(owner(), method, args).unwrap()
    }

    fn call_as<R: CandidType + DeserializeOwned>(
        &mut self,
        by: Principal,
        method: &str,
        args: impl ArgumentEncoder,
    ) -> Result<R, CallError> {
        charter_icp_host::call(&mut *self.host, self.id, by, method, args)
    }

    fn ask<R: CandidType + DeserializeOwned>(&mut self, method: &str, args: impl ArgumentEncoder) -> R {
        charter_icp_host::ask(&mut *self.host, self.id, stranger(), method, args).unwrap()
    }

    fn change(&mut self, method: &str, args: impl ArgumentEncoder) -> Result<Receipt, Error> {
        let done = self.call(method, args);
        // Process the messages of timers that it may have set.
        self.host.settle();
        done
    }

    fn wake(&mut self, input: &str) -> Result<TurnEnd, Error> {
        self.call("wake", (wake(input),))
    }

    fn submit(&mut self, method: &str, args: impl ArgumentEncoder) -> CallId {
        let args = encode_args(args).unwrap();
        self.host.submit(self.id, owner(), method, &args).unwrap()
    }

    fn upgrade(&mut self) -> Result<(), Reject> {
        let none = encode_args(()).unwrap();
        self.host.upgrade(self.id, owner(), module(), &none)
    }

    fn advance(&mut self, ms: u64) {
        self.host.advance(Duration::from_millis(ms));
        self.host.settle();
    }

    fn runtime(&mut self) -> Runtime {
        self.ask("runtime", ())
    }

    fn state(&mut self) -> String {
        self.runtime().state.join(" ")
    }

    fn soul(&mut self) -> Soul {
        self.ask("soul", ())
    }

    fn projection(&mut self) -> Projection {
        self.ask::<Result<Projection, Error>>("projection", ()).unwrap()
    }

    fn turns(&mut self, query: TurnsQuery) -> Turns {
        self.ask::<Result<Turns, Error>>("turns", (query,)).unwrap()
    }

    fn events(&mut self, page: Page) -> Events {
        self.ask::<Result<Events, Error>>("events", (page,)).unwrap()
    }

    fn refusals(&mut self) -> Refusals {
        let all = Page { from: None, limit: Some(200) };
        self.ask::<Result<Refusals, Error>>("refusals", (all,)).unwrap()
    }

    /// Exports the journal as a file.
    fn export(&mut self) -> String {
        let mut args = ExportArgs::default();
        let mut file = String::new();
        loop {
            let part: Result<ExportPart, Error> = self.ask("export", (args,));
            let part = part.unwrap();
            file.push_str(&part.text);
            args.to = Some(part.to);
            match part.next {
                Some(next) => args.from = Some(next),
                None => return file,
            }
        }
    }

    /// Asserts the invariants that hold while no message is being executed.
    fn sound(&mut self) {
        let check: Check = self.ask("check", ());
        assert!(check.differences.is_empty(), "{check:?}");
        assert!(check.snapshot && check.chain, "{check:?}");
        let file = self.export();
        let report = charter_journal::verify_export(&mut file.as_bytes(), &[]).unwrap();
        assert!(report.is_verified(), "{:?}", report.findings);
        let runtime = self.runtime();
        assert_eq!(report.runs[0].hash.to_string(), runtime.head);
        assert_eq!(report.runs[0].first + report.runs[0].records, runtime.end);
        if runtime.turn.is_none() {
            assert!(self.projection().current);
        }
    }
}

fn wake(input: &str) -> WakeArgs {
    WakeArgs { input: Some(input.into()), ..WakeArgs::default() }
}
