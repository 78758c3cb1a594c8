//! Runs feijoa through its bindings. The generated file is checked in next to this one for reading,
//! and is compared with the generator's output.

use std::path::Path;

use charter_kernel::Machine;
use charter_typed::{Session, generate};
use serde_json::json;

#[allow(dead_code, unreachable_pub)]
mod bindings {
    include!("feijoa/bindings.rs");
}

use bindings::{AsExecutor, AsJudge, AsOrchestrator, AsPlanner, AsSimulator, PlanState, State, data};

const CHARTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charters/feijoa/charter.yaml");

#[test]
fn kept_bindings_match_the_generator() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/feijoa/bindings.rs");
    let made = generate::from_file(CHARTER).unwrap();
    if std::env::var_os("UPDATE_BINDINGS").is_some() {
        std::fs::write(&file, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == made, "run `UPDATE_BINDINGS=1 cargo test -p charter-typed --test it`");
}

#[test]
fn a_plan_runs_to_its_end_each_step_by_the_role_that_owns_it() {
    let document =
        charter_format::read(&std::fs::read_to_string(CHARTER).unwrap(), "charter.yaml", &Default::default())
            .unwrap_or_else(|e| panic!("{e}"));
    let machine = Machine::compile(document.definition).unwrap();
    assert_eq!(machine.digest().to_string(), bindings::CHARTER);
    let input = json!({"goal": "Move the archive"});
    let mut run = Session::start(&machine, "r", input, 1_795_255_200_000).unwrap();
    let state = |run: &Session<'_>| State::at(run.state("root")[0]).unwrap();
    let plan = |run: &Session<'_>| PlanState::at(run.state("careful")[0]).unwrap();
    let advance = |run: &mut Session<'_>, to| {
        AsOrchestrator::new(run, "otto").advance(data::Advance { to }).unwrap();
    };

    let submit = data::Submit { plan: "careful".into() };
    AsPlanner::new(&mut run, "pat").submit(submit.clone()).unwrap();
    assert_eq!((state(&run), plan(&run)), (State::Planning, PlanState::Pending));
    // Legal for the role, but not in this state: the kernel refuses it at run time.
    let refused = AsJudge::new(&mut run, "jo").to("careful").select().unwrap_err();
    assert_eq!(refused.code.word(), "interlock");
    advance(&mut run, data::AdvanceTo::Decision);
    assert_eq!(AsPlanner::new(&mut run, "pat").submit(submit).unwrap_err().code.word(), "unhandled");
    AsJudge::new(&mut run, "jo").to("careful").select().unwrap();
    advance(&mut run, data::AdvanceTo::Simulation);
    let report = data::Simulate { report: Some(json!("it can be undone")) };
    AsSimulator::new(&mut run, "sim").to("careful").simulate(report).unwrap();
    advance(&mut run, data::AdvanceTo::Execution);
    let result = data::Execute { result: None };
    AsExecutor::new(&mut run, "exe").to("careful").execute(result).unwrap();
    assert_eq!(plan(&run), PlanState::Executed);
    advance(&mut run, data::AdvanceTo::Finished);
    assert_eq!(state(&run), State::Finished);
    assert_eq!(run.snapshot().output().unwrap()["plans"], json!({"careful": "EXECUTED"}));
}
