use charter_kernel::{Digest, Machine};
use charter_typed::Session;
use serde_json::json;

#[allow(dead_code)] // Not every role, event and state is used below.
mod bindings {
    include!(concat!(env!("OUT_DIR"), "/charter.rs"));
}
use bindings::{AsClerk, AsController, State, data};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let source = include_str!("../charter.yaml");
    let charter = charter_format::read(source, "charter.yaml", &Default::default())?;
    let machine = Machine::compile(charter.definition).map_err(|problems| format!("{problems:?}"))?;
    let mut run = Session::start(&machine, "run-1", json!({}), 0)?;

    let mut ana = AsClerk::new(&mut run, "ana");
    ana.request(data::Request { amount: 12.5 })?;
    // ana.approve(...) does not compile: only a controller may send APPROVE.

    let payment = json!({"amount": 12.5});
    let digest = Digest::of_json(&payment).to_string();
    let mut bea = AsController::new(&mut run, "bea");
    bea.approve(data::Approve { digest })?;
    assert_eq!(State::at(run.state("root")[0]), Some(State::Paid));

    // Whether an event is legal now is decided at run time.
    let refused = AsClerk::new(&mut run, "ana").request(data::Request { amount: 1.0 });
    println!("paid; a second request is refused: {}", refused.unwrap_err().code);
    Ok(())
}
