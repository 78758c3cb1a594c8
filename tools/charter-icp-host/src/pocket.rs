//! Implements `Host` for PocketIC, the test replica by the developers of the Internet Computer.
//!
//! Its server is in no package registry; `POCKET_IC_BIN` is the path of the program. It differs
//! from the local host: a tick is a round, in which several messages may be executed, and the ids
//! of canisters and times differ.

use std::path::Path;
use std::time::Duration;

use candid::Principal;
use pocket_ic::{CanisterSettings, PocketIc, PocketIcBuilder, RejectResponse};

use crate::each::NoHost;
use crate::host::{CallId, Host, Inner};
use crate::reject::{Answer, Reject, RejectCode};

/// The environment variable with the path of the server.
pub(crate) const VARIABLE: &str = "POCKET_IC_BIN";
/// Number of rounds after which nothing is left to do, in tests without endless calls.
const ROUNDS: usize = 20;

/// A PocketIC server with one application subnet.
pub struct PocketHost(PocketIc);

impl PocketHost {
    /// Starts the server that `POCKET_IC_BIN` names.
    ///
    /// # Errors
    /// `POCKET_IC_BIN` is not set or does not name a server.
    pub fn new() -> Result<PocketHost, NoHost> {
        let path = std::env::var_os(VARIABLE).ok_or_else(|| {
            NoHost(format!("`{VARIABLE}` is not set: it must name the program `pocket-ic`, which is not part of this crate (see https://github.com/dfinity/pocketic)"))
        })?;
        let path = Path::new(&path);
        if !path.is_file() {
            return Err(NoHost(format!(
                "`{VARIABLE}` names `{}`, which does not exist: it must name the program `pocket-ic`",
                path.display()
            )));
        }
        let server = PocketIcBuilder::new().with_server_binary(path.to_path_buf()).with_application_subnet().build();
        Ok(PocketHost(server))
    }

    fn exists(&self, canister: Principal) -> Result<(), Reject> {
        if self.0.canister_exists(canister) {
            Ok(())
        } else {
            Err(Reject::new(301, format!("Canister {canister} not found.")))
        }
    }
}

fn reject(response: RejectResponse) -> Reject {
    Reject {
        code: RejectCode::from_number(response.reject_code as u64).unwrap_or(RejectCode::SysUnknown),
        error: response.error_code as u16,
        message: response.reject_message,
    }
}

impl Host for PocketHost {
    fn name(&self) -> &'static str {
        "PocketIC"
    }

    fn create(&mut self, controllers: &[Principal]) -> Result<Principal, Reject> {
        let settings = CanisterSettings { controllers: Some(controllers.to_vec()), ..CanisterSettings::default() };
        Ok(self.0.create_canister_with_settings(None, Some(settings)))
    }

    fn install(&mut self, canister: Principal, sender: Principal, module: &[u8], arg: &[u8]) -> Result<(), Reject> {
        self.exists(canister)?;
        let status = self.0.canister_status(canister, Some(sender)).map_err(reject)?;
        if status.module_hash.is_some() {
            return Err(Reject::new(514, format!("Canister {canister} is not empty: upgrade or reinstall it.")));
        }
        // The library's `install_canister` panics if the canister traps; for an empty canister,
        // reinstalling does the same.
        self.reinstall(canister, sender, module, arg)
    }

    fn reinstall(&mut self, canister: Principal, sender: Principal, module: &[u8], arg: &[u8]) -> Result<(), Reject> {
        self.0.reinstall_canister(canister, module.to_vec(), arg.to_vec(), Some(sender)).map_err(reject)
    }

    fn upgrade(&mut self, canister: Principal, sender: Principal, module: &[u8], arg: &[u8]) -> Result<(), Reject> {
        self.0.upgrade_canister(canister, module.to_vec(), arg.to_vec(), Some(sender)).map_err(reject)
    }

    fn query(&mut self, canister: Principal, sender: Principal, method: &str, arg: &[u8]) -> Answer {
        self.exists(canister)?;
        self.0.query_call(canister, sender, method, arg.to_vec()).map_err(reject)
    }

    fn submit(&mut self, canister: Principal, sender: Principal, method: &str, arg: &[u8]) -> Result<CallId, Reject> {
        self.exists(canister)?;
        let id = self.0.submit_call(canister, sender, method, arg.to_vec()).map_err(reject)?;
        Ok(CallId(Inner::Pocket(id)))
    }

    fn answer(&mut self, call: &CallId) -> Option<Answer> {
        match &call.0 {
            Inner::Pocket(id) => self.0.ingress_status(id.clone()).map(|answer| answer.map_err(reject)),
            Inner::Local(_) => None,
        }
    }

    fn await_call(&mut self, call: &CallId) -> Answer {
        match &call.0 {
            Inner::Pocket(id) => self.0.await_call(id.clone()).map_err(reject),
            Inner::Local(_) => Err(Reject::new(600, "The message belongs to another host.")),
        }
    }

    fn tick(&mut self) {
        self.0.tick();
    }

    fn settle(&mut self) {
        for _ in 0..ROUNDS {
            self.0.tick();
        }
    }

    fn advance(&mut self, time: Duration) {
        self.0.advance_time(time);
    }

    fn now(&mut self) -> Duration {
        Duration::from_nanos(self.0.get_time().as_nanos_since_unix_epoch())
    }

    fn stop(&mut self, canister: Principal, sender: Principal) -> Result<(), Reject> {
        self.0.stop_canister(canister, Some(sender)).map_err(reject)
    }

    fn start(&mut self, canister: Principal, sender: Principal) -> Result<(), Reject> {
        self.0.start_canister(canister, Some(sender)).map_err(reject)
    }

    fn controllers(&mut self, canister: Principal) -> Result<Vec<Principal>, Reject> {
        self.exists(canister)?;
        Ok(self.0.get_controllers(canister))
    }

    fn set_controllers(
        &mut self,
        canister: Principal,
        sender: Principal,
        controllers: &[Principal],
    ) -> Result<(), Reject> {
        self.0.set_controllers(canister, Some(sender), controllers.to_vec()).map_err(reject)
    }
}
