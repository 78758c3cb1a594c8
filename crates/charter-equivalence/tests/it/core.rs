use charter_equivalence::{Core, Flaw, Open, Sources, compare, difference};
use charter_test_support::cases;

#[test]
fn a_run_that_is_restored_before_each_input_gives_the_same_records() {
    compare(cases(60, 3_000), Sources::All, &[("restored", &|setup| Some(Box::new(Core::forgetful(setup))))]);
}

/// The suite finds a defect and prints the shrunk inputs.
fn finds(flaw: Flaw, sources: Sources) -> String {
    let open: Open<'_> = &|setup| Some(Box::new(Core::flawed(setup, flaw)));
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

#[test]
fn a_host_that_does_not_know_the_unique_keys_of_other_runs_differs() {
    let text = finds(Flaw::SharesNoKeys, Sources::Only("shop"));
    assert!(text.contains("PAY"), "{text}");
}

#[test]
fn a_host_that_gives_a_unique_key_to_a_refused_event_differs() {
    let text = finds(Flaw::KeepsKeysOfRefused, Sources::Only("shop"));
    assert!(text.contains("refused"), "{text}");
}

#[test]
fn a_host_may_refuse_a_charter_only_because_of_unique_keys() {
    let refuses: Open<'_> = &|_| None;
    assert_eq!(difference(3, Sources::Only("shop"), &[("strict", refuses)]), None);
    let text = difference(3, Sources::Only("job"), &[("strict", refuses)]).unwrap().text;
    assert_eq!(text, "the host `strict` refuses the charter `job`, which has no unique keys");
}
