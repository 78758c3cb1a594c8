//! Stable codes of findings. Each has a page in `docs/codes/`.

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal: $what:literal;)*) => {
        $(#[doc = $what] pub const $name: &str = $code;)*
        /// All codes, each with its meaning in one sentence.
        pub const ALL: &[(&str, &str)] = &[$(($code, $what)),*];
    };
}

codes! {
    // Types.
    UNKNOWN_FIELD = "unknown-field": "An expression reads a field that does not exist.";
    TYPE = "type": "An expression always fails on its types, or has the wrong result type.";
    UNKNOWN_STATE = "unknown-state": "`in()` names a state that does not exist.";
    UNTYPED_NUMBER = "untyped-number": "Arithmetic reads a number that is an int or a double by its value.";
    DATA_MISMATCH = "data-mismatch": "A value can never fit its declaration.";
    CONSTANT_CONDITION = "constant-condition": "A condition reads nothing, so its result is always the same.";
    // States and transitions.
    UNREACHABLE_STATE = "unreachable-state": "No transition leads to a state.";
    DEAD_END = "dead-end": "A state that is not final has no outgoing transition.";
    SHADOWED_TRANSITION = "shadowed-transition": "An earlier transition of the same event always wins.";
    GUARD_BEFORE_ASSIGN = "guard-before-assign": "A guard reads a variable that its own transition assigns.";
    ALWAYS_LOOP = "always-loop": "Eventless transitions form a cycle without a condition.";
    LOOP_WITHOUT_BOUND = "loop-without-bound": "A run can follow a cycle without any event from outside, and nothing counts the iterations.";
    // Declarations.
    UNUSED_EVENT = "unused-event": "No state handles a declared event.";
    UNHANDLED_EVENT = "unhandled-event": "No state handles an event that an action raises or sends.";
    UNUSED_GUARD = "unused-guard": "A guard is never used by a transition.";
    UNUSED_ACTION = "unused-action": "A named action is never used.";
    UNUSED_ACTOR = "unused-actor": "An actor is never invoked or spawned.";
    UNUSED_MACHINE = "unused-machine": "A machine is never invoked or spawned.";
    UNUSED_ROLE = "unused-role": "A role is never required by an event or a transition.";
    UNUSED_DELAY = "unused-delay": "A named delay is never used.";
    UNUSED_TYPE = "unused-type": "A type is never used by a schema.";
    UNUSED_LEDGER_KIND = "unused-ledger-kind": "A ledger kind is never written or read.";
    NEVER_ASSIGNED = "never-assigned": "A context variable starts as null and is never assigned.";
    EVENT_WITHOUT_SCHEMA = "event-without-schema": "An event has no schema.";
    // Authority.
    UNKNOWN_ROLE = "unknown-role": "An expression asks for a role that is not declared.";
    EVENT_WITHOUT_OWNER = "event-without-owner": "The charter declares roles, but any principal may send an event.";
    TRANSITION_WITHOUT_BY = "transition-without-by": "The charter declares roles, but any principal may take a transition.";
    BY_WITHOUT_SYSTEM = "by-without-system": "A transition for a platform event requires a role that the platform does not have.";
    NOBODY_CAN_LEAVE = "nobody-can-leave": "A state can only be left by events that no sender may send.";
    QUORUM_OF_ANYBODY = "quorum-of-anybody": "A quorum accepts votes of any principal.";
    APPROVAL_WITHOUT_EXPIRY = "approval-without-expiry": "A state waits for an approval without a time limit.";
    NOT_BY_NOBODY = "not-by-nobody": "`not_by` can never exclude anybody.";
    APPROVAL_OVERWRITTEN = "approval-overwritten": "The approved value is changed before it is used.";
    TURNED_AWAY = "turned-away": "A transition takes the events that an approval, a quorum or `not_by` turns away.";
    // Actors.
    INVOKE_WITHOUT_TIMEOUT = "invoke-without-timeout": "An invocation has no timeout.";
    INVOKE_WITHOUT_ON_ERROR = "invoke-without-on-error": "An invocation has no `onError`.";
    ERROR_DROPPED = "error-dropped": "An `onError` transition discards the error.";
    TOOL_NOT_ALLOWED = "tool-not-allowed": "A model is offered an event that its actor may never send.";
    // Ledger and interlocks.
    PERMIT_NEVER_USED = "permit-never-used": "Permits of a kind are granted, but no transition requires them.";
    PERMIT_NEVER_GRANTED = "permit-never-granted": "A transition requires a permit of a kind that is never granted.";
    OBLIGATION_NEVER_CLOSED = "obligation-never-closed": "Obligations of a kind are opened, but never closed.";
    OBLIGATION_NEVER_OPENED = "obligation-never-opened": "A transition requires an obligation of a kind that is never opened.";
    INTERLOCK_WITHOUT_ROW = "interlock-without-row": "The table of an interlock has no row for a state.";
    // Exploration.
    DEADLOCK = "deadlock": "A run can reach a state in which nothing more can happen.";
    STUCK = "stuck": "A run can reach a state in which no event is accepted, of all or of those that were tried.";
    STATE_NOT_REACHED = "state-not-reached": "A state is never reached, or was not reached with what was tried.";
    TRANSITION_NOT_TAKEN = "transition-not-taken": "A transition is never taken, or was not taken with what was tried.";
    EXECUTION = "execution": "An action can fail without a handler for the error; the event is refused.";
    RUNAWAY = "runaway": "An event does not settle; it is refused.";
    TOO_COSTLY = "too-costly": "An event costs more than its budget; it is refused.";
    TOO_LARGE = "too-large": "An event builds more than its budget; it is refused.";
    INTERLOCK = "interlock": "An interlock can refuse an event.";
    CANNOT_START = "cannot-start": "No run can be started, or none with the inputs that were tried.";
    NO_SAMPLE = "no-sample": "No data could be generated for a schema.";
    // Properties.
    PROPERTY_VIOLATED = "property-violated": "A property does not hold.";
    PROPERTY_HOLDS = "property-holds": "A property is proved.";
    PROPERTY_UNDECIDED = "property-undecided": "A property is neither proved nor violated.";
    PROPERTY_FAILS = "property-fails": "A property cannot be evaluated.";
}
