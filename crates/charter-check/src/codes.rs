//! Stable codes of findings; each has a page in `docs/codes/`.

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal: $what:literal;)*) => {
        $(#[doc = $what] pub const $name: &str = $code;)*
        /// All codes, each with what it says, in one sentence.
        pub const ALL: &[(&str, &str)] = &[$(($code, $what)),*];
    };
}

codes! {
    // Types.
    UNKNOWN_FIELD = "unknown-field": "An expression reads a field that is not there.";
    TYPE = "type": "An expression fails on its types, or gives something else than is needed.";
    UNKNOWN_STATE = "unknown-state": "`in()` names a state that does not exist.";
    DATA_MISMATCH = "data-mismatch": "A value certainly does not fit what is declared for it.";
    CONSTANT_CONDITION = "constant-condition": "A condition reads nothing and always gives the same.";
    // States and transitions.
    UNREACHABLE_STATE = "unreachable-state": "No transition leads to a state.";
    DEAD_END = "dead-end": "Nothing leads out of a state that is not final.";
    SHADOWED_TRANSITION = "shadowed-transition": "An earlier transition of the same event always wins.";
    GUARD_BEFORE_ASSIGN = "guard-before-assign": "A guard judges a value that its transition sets only afterwards.";
    ALWAYS_LOOP = "always-loop": "Eventless transitions go round in a circle without any condition.";
    LOOP_WITHOUT_BOUND = "loop-without-bound": "A run can go round in a circle without any event from outside, and nothing counts the rounds.";
    // What is declared.
    UNUSED_EVENT = "unused-event": "No state handles a declared event.";
    UNHANDLED_EVENT = "unhandled-event": "No state handles an event that an action raises or sends.";
    UNUSED_GUARD = "unused-guard": "No transition uses a guard.";
    UNUSED_ACTION = "unused-action": "Nothing uses a named action.";
    UNUSED_ACTOR = "unused-actor": "Nothing invokes or spawns an actor.";
    UNUSED_MACHINE = "unused-machine": "Nothing invokes or spawns a machine.";
    UNUSED_ROLE = "unused-role": "No role of that name is asked for.";
    UNUSED_DELAY = "unused-delay": "Nothing uses a named delay.";
    UNUSED_TYPE = "unused-type": "No schema refers to a type.";
    UNUSED_LEDGER_KIND = "unused-ledger-kind": "Nothing writes or reads a kind of the ledger.";
    NEVER_ASSIGNED = "never-assigned": "A context variable is null for ever.";
    EVENT_WITHOUT_SCHEMA = "event-without-schema": "The data of an event can be anything.";
    // Authority.
    EVENT_WITHOUT_OWNER = "event-without-owner": "Anybody may send an event, though the charter has roles.";
    TRANSITION_WITHOUT_BY = "transition-without-by": "Anybody may take a transition, though the charter has roles.";
    BY_WITHOUT_SYSTEM = "by-without-system": "A transition of the platform asks for a role that the platform does not have.";
    NOBODY_CAN_LEAVE = "nobody-can-leave": "A state waits for an event that nobody may send.";
    QUORUM_OF_ANYBODY = "quorum-of-anybody": "A quorum counts anybody.";
    APPROVAL_WITHOUT_EXPIRY = "approval-without-expiry": "A state waits for an approval for ever.";
    APPROVAL_OVERWRITTEN = "approval-overwritten": "What was approved is changed before it is used.";
    // Actors of the host.
    INVOKE_WITHOUT_TIMEOUT = "invoke-without-timeout": "A lost answer leaves the run waiting for ever.";
    INVOKE_WITHOUT_ON_ERROR = "invoke-without-on-error": "Nothing happens when an invocation fails.";
    ERROR_DROPPED = "error-dropped": "The error of an invocation is lost.";
    // Ledger and interlocks.
    PERMIT_NEVER_USED = "permit-never-used": "Permits of a kind are granted, and nothing requires them.";
    PERMIT_NEVER_GRANTED = "permit-never-granted": "Permits of a kind are required, and nothing grants them.";
    OBLIGATION_NEVER_CLOSED = "obligation-never-closed": "Obligations of a kind are opened, and nothing closes them.";
    OBLIGATION_NEVER_OPENED = "obligation-never-opened": "Obligations of a kind are asked for, and nothing opens them.";
    INTERLOCK_WITHOUT_ROW = "interlock-without-row": "The table of an interlock says nothing about a state.";
    // Exploration.
    DEADLOCK = "deadlock": "A run can get where nothing can happen any more.";
    STUCK = "stuck": "A run can get where no event that was tried is accepted.";
    STATE_NOT_REACHED = "state-not-reached": "The exploration never reached a state.";
    TRANSITION_NOT_TAKEN = "transition-not-taken": "The exploration never took a transition.";
    EXECUTION = "execution": "An action can fail with nothing handling the error; the event is refused.";
    RUNAWAY = "runaway": "An event can fail to come to rest; it is refused.";
    INTERLOCK = "interlock": "An interlock can refuse an event.";
    CANNOT_START = "cannot-start": "No run could be started.";
    NO_SAMPLE = "no-sample": "No data could be made for a schema.";
    // Properties.
    PROPERTY_VIOLATED = "property-violated": "A property does not hold.";
    PROPERTY_HOLDS = "property-holds": "A property holds, as far as was explored.";
    PROPERTY_FAILS = "property-fails": "A property cannot be evaluated.";
}
