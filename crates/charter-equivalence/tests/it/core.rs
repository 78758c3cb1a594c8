use charter_equivalence::{Core, Flaw, Sources, compare, difference};
use charter_test_support::cases;

#[test]
fn a_run_that_is_restored_before_each_input_gives_the_same_records() {
    compare(cases(60, 3_000), Sources::All, &[("restored", &|setup| Box::new(Core::forgetful(setup)))]);
}

/// The suite finds a defect and prints the shrunk inputs.
fn finds(flaw: Flaw, sources: Sources) -> String {
    let open: &dyn Fn(&charter_equivalence::Setup) -> _ = &|setup| Box::new(Core::flawed(setup, flaw)) as _;
    let found = difference(2_000, sources, &[("flawed", open)]);
    found.unwrap_or_else(|| panic!("{flaw:?} was not found")).text
}

#[test]
fn a_host_that_does_not_recognize_ids_differs() {
    let text = finds(Flaw::ForgetsIds, Sources::Only("job"));
    assert!(text.contains("id `"), "{text}");
}

#[test]
fn a_host_that_forgets_ids_in_a_restart_differs() {
    let text = finds(Flaw::ForgetsIdsInRestarts, Sources::Only("job"));
    assert!(text.contains("killed"), "{text}");
}

#[test]
fn a_host_that_forgets_refused_timers_differs() {
    let text = finds(Flaw::ForgetsRefusedTimers, Sources::Only("job"));
    assert!(text.contains("refused"), "{text}");
}

#[test]
fn a_host_that_forgets_attempts_differs() {
    let text = finds(Flaw::ForgetsAttempts, Sources::Only("job"));
    assert!(text.contains("charter.attempt"), "{text}");
}

#[test]
fn a_host_that_repeats_calls_that_may_have_taken_effect_differs() {
    let text = finds(Flaw::RepeatsEverything, Sources::Only("job"));
    assert!(text.contains("killed"), "{text}");
}

#[test]
fn a_host_that_begins_an_attempt_while_the_run_is_paused_differs() {
    let text = finds(Flaw::IgnoresPauses, Sources::Only("job"));
    assert!(text.contains("charter.pause") && text.contains("charter.attempt"), "{text}");
}
