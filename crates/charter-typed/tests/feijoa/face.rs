// Made by charter-typed from the charter `feijoa` 1.0.0. Not to be edited.

/// Digest of the charter that this was made from.
pub const CHARTER: &str = "sha256:a763cb154681673228b7d1444593cfb7d554e5bccbc64438dc44962c1c09c958";

/// The states of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// Planner agents generate candidate plans.
    Planning,
    /// The judge selects or rejects plans.
    Decision,
    /// Selected plans undergo a dry run.
    Simulation,
    /// Simulated plans are executed for real.
    Execution,
    /// All plans have reached a terminal state.
    Finished,
}

impl State {
    /// All of them, in document order.
    pub const ALL: [State; 5] = [State::Planning, State::Decision, State::Simulation, State::Execution, State::Finished];

    /// Its path in the charter.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            State::Planning => "PLANNING",
            State::Decision => "DECISION",
            State::Simulation => "SIMULATION",
            State::Execution => "EXECUTION",
            State::Finished => "FINISHED",
        }
    }

    /// The state at a path.
    #[must_use]
    pub fn at(path: &str) -> Option<State> {
        State::ALL.into_iter().find(|s| s.path() == path)
    }
}

/// The states of a `plan`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PlanState {
    /// Submitted by a planner, awaiting a decision.
    Pending,
    /// Chosen by the judge.
    Selected,
    /// Successfully dry-run.
    Simulated,
    /// Fully executed.
    Executed,
    /// Rejected by the judge.
    Rejected,
    /// Failed in simulation or execution.
    Failed,
}

impl PlanState {
    /// All of them, in document order.
    pub const ALL: [PlanState; 6] = [PlanState::Pending, PlanState::Selected, PlanState::Simulated, PlanState::Executed, PlanState::Rejected, PlanState::Failed];

    /// Its path in the charter.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            PlanState::Pending => "PENDING",
            PlanState::Selected => "SELECTED",
            PlanState::Simulated => "SIMULATED",
            PlanState::Executed => "EXECUTED",
            PlanState::Rejected => "REJECTED",
            PlanState::Failed => "FAILED",
        }
    }

    /// The state at a path.
    #[must_use]
    pub fn at(path: &str) -> Option<PlanState> {
        PlanState::ALL.into_iter().find(|s| s.path() == path)
    }
}

/// What the events carry.
pub mod data {
    /// Data: Submit.
    #[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
    pub struct Submit {
        /// `plan`.
        pub plan: String,
    }

    /// One of a few words.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, ::serde::Serialize, ::serde::Deserialize)]
    pub enum AdvanceTo {
        /// `PLANNING`.
        #[serde(rename = "PLANNING")]
        Planning,
        /// `DECISION`.
        #[serde(rename = "DECISION")]
        Decision,
        /// `SIMULATION`.
        #[serde(rename = "SIMULATION")]
        Simulation,
        /// `EXECUTION`.
        #[serde(rename = "EXECUTION")]
        Execution,
        /// `FINISHED`.
        #[serde(rename = "FINISHED")]
        Finished,
    }

    /// Data: Advance.
    #[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
    pub struct Advance {
        /// `to`.
        pub to: AdvanceTo,
    }

    /// Data: Reject.
    #[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
    pub struct Reject {
        /// `reason`.
        pub reason: String,
    }

    /// Data: Simulate.
    #[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
    pub struct Simulate {
        /// `report`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub report: Option<::serde_json::Value>,
    }

    /// Data: Execute.
    #[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
    pub struct Execute {
        /// `result`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub result: Option<::serde_json::Value>,
    }

    /// Data: Fail.
    #[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
    pub struct Fail {
        /// `reason`.
        pub reason: String,
    }

}

/// Any event that may be sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A candidate plan. Its id names the actor that later events are addressed to.
    Submit(data::Submit),
    /// The next phase begins.
    Advance(data::Advance),
    /// The plan is worth a dry run.
    Select,
    /// The plan is not worth it.
    Reject(data::Reject),
    /// The dry run went well.
    Simulate(data::Simulate),
    /// The plan was carried out.
    Execute(data::Execute),
    /// The plan went wrong.
    Fail(data::Fail),
}

impl Event {
    /// Its type in the charter.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Event::Submit(_) => "SUBMIT",
            Event::Advance(_) => "ADVANCE",
            Event::Select => "SELECT",
            Event::Reject(_) => "REJECT",
            Event::Simulate(_) => "SIMULATE",
            Event::Execute(_) => "EXECUTE",
            Event::Fail(_) => "FAIL",
        }
    }

    /// Its data, as JSON.
    ///
    /// # Errors
    /// A number that JSON cannot say (not a number, infinite).
    pub fn data(&self) -> Result<::serde_json::Value, ::serde_json::Error> {
        match self {
            Event::Submit(data) => ::serde_json::to_value(data),
            Event::Advance(data) => ::serde_json::to_value(data),
            Event::Select => Ok(::serde_json::Value::Object(::serde_json::Map::new())),
            Event::Reject(data) => ::serde_json::to_value(data),
            Event::Simulate(data) => ::serde_json::to_value(data),
            Event::Execute(data) => ::serde_json::to_value(data),
            Event::Fail(data) => ::serde_json::to_value(data),
        }
    }
}

/// Acts as `planner`: proposes plans.
#[derive(Debug)]
pub struct AsPlanner<'d, D> {
    door: &'d mut D,
    id: String,
    to: Option<String>,
}

impl<'d, D: ::charter_typed::Door> AsPlanner<'d, D> {
    /// The principal `id`, acting through a door.
    pub fn new(door: &'d mut D, id: impl Into<String>) -> Self {
        Self { door, id: id.into(), to: None }
    }

    /// What follows is for the actor of that id, not for the root.
    #[must_use]
    pub fn to(self, actor: impl Into<String>) -> Self {
        Self { to: Some(actor.into()), ..self }
    }

    /// A candidate plan. Its id names the actor that later events are addressed to.
    ///
    /// # Errors
    /// The host's refusal; nothing has changed.
    pub fn submit(&mut self, data: data::Submit) -> Result<D::Answer, D::Refusal> {
        self.door.send(self.to.as_deref(), "SUBMIT", ::serde_json::to_value(data).unwrap_or_default(), &self.id, "planner")
    }

    /// The plan went wrong.
    ///
    /// # Errors
    /// The host's refusal; nothing has changed.
    pub fn fail(&mut self, data: data::Fail) -> Result<D::Answer, D::Refusal> {
        self.door.send(self.to.as_deref(), "FAIL", ::serde_json::to_value(data).unwrap_or_default(), &self.id, "planner")
    }

}

/// Acts as `judge`: selects or rejects plans.
#[derive(Debug)]
pub struct AsJudge<'d, D> {
    door: &'d mut D,
    id: String,
    to: Option<String>,
}

impl<'d, D: ::charter_typed::Door> AsJudge<'d, D> {
    /// The principal `id`, acting through a door.
    pub fn new(door: &'d mut D, id: impl Into<String>) -> Self {
        Self { door, id: id.into(), to: None }
    }

    /// What follows is for the actor of that id, not for the root.
    #[must_use]
    pub fn to(self, actor: impl Into<String>) -> Self {
        Self { to: Some(actor.into()), ..self }
    }

    /// The plan is worth a dry run.
    ///
    /// # Errors
    /// The host's refusal; nothing has changed.
    pub fn select(&mut self) -> Result<D::Answer, D::Refusal> {
        self.door.send(self.to.as_deref(), "SELECT", ::serde_json::Value::Object(::serde_json::Map::new()), &self.id, "judge")
    }

    /// The plan is not worth it.
    ///
    /// # Errors
    /// The host's refusal; nothing has changed.
    pub fn reject(&mut self, data: data::Reject) -> Result<D::Answer, D::Refusal> {
        self.door.send(self.to.as_deref(), "REJECT", ::serde_json::to_value(data).unwrap_or_default(), &self.id, "judge")
    }

    /// The plan went wrong.
    ///
    /// # Errors
    /// The host's refusal; nothing has changed.
    pub fn fail(&mut self, data: data::Fail) -> Result<D::Answer, D::Refusal> {
        self.door.send(self.to.as_deref(), "FAIL", ::serde_json::to_value(data).unwrap_or_default(), &self.id, "judge")
    }

}

/// Acts as `simulator`: runs plans dry.
#[derive(Debug)]
pub struct AsSimulator<'d, D> {
    door: &'d mut D,
    id: String,
    to: Option<String>,
}

impl<'d, D: ::charter_typed::Door> AsSimulator<'d, D> {
    /// The principal `id`, acting through a door.
    pub fn new(door: &'d mut D, id: impl Into<String>) -> Self {
        Self { door, id: id.into(), to: None }
    }

    /// What follows is for the actor of that id, not for the root.
    #[must_use]
    pub fn to(self, actor: impl Into<String>) -> Self {
        Self { to: Some(actor.into()), ..self }
    }

    /// The dry run went well.
    ///
    /// # Errors
    /// The host's refusal; nothing has changed.
    pub fn simulate(&mut self, data: data::Simulate) -> Result<D::Answer, D::Refusal> {
        self.door.send(self.to.as_deref(), "SIMULATE", ::serde_json::to_value(data).unwrap_or_default(), &self.id, "simulator")
    }

    /// The plan went wrong.
    ///
    /// # Errors
    /// The host's refusal; nothing has changed.
    pub fn fail(&mut self, data: data::Fail) -> Result<D::Answer, D::Refusal> {
        self.door.send(self.to.as_deref(), "FAIL", ::serde_json::to_value(data).unwrap_or_default(), &self.id, "simulator")
    }

}

/// Acts as `executor`: runs plans for real.
#[derive(Debug)]
pub struct AsExecutor<'d, D> {
    door: &'d mut D,
    id: String,
    to: Option<String>,
}

impl<'d, D: ::charter_typed::Door> AsExecutor<'d, D> {
    /// The principal `id`, acting through a door.
    pub fn new(door: &'d mut D, id: impl Into<String>) -> Self {
        Self { door, id: id.into(), to: None }
    }

    /// What follows is for the actor of that id, not for the root.
    #[must_use]
    pub fn to(self, actor: impl Into<String>) -> Self {
        Self { to: Some(actor.into()), ..self }
    }

    /// The plan was carried out.
    ///
    /// # Errors
    /// The host's refusal; nothing has changed.
    pub fn execute(&mut self, data: data::Execute) -> Result<D::Answer, D::Refusal> {
        self.door.send(self.to.as_deref(), "EXECUTE", ::serde_json::to_value(data).unwrap_or_default(), &self.id, "executor")
    }

    /// The plan went wrong.
    ///
    /// # Errors
    /// The host's refusal; nothing has changed.
    pub fn fail(&mut self, data: data::Fail) -> Result<D::Answer, D::Refusal> {
        self.door.send(self.to.as_deref(), "FAIL", ::serde_json::to_value(data).unwrap_or_default(), &self.id, "executor")
    }

}

/// Acts as `orchestrator`: moves the phases on and does nothing else.
#[derive(Debug)]
pub struct AsOrchestrator<'d, D> {
    door: &'d mut D,
    id: String,
    to: Option<String>,
}

impl<'d, D: ::charter_typed::Door> AsOrchestrator<'d, D> {
    /// The principal `id`, acting through a door.
    pub fn new(door: &'d mut D, id: impl Into<String>) -> Self {
        Self { door, id: id.into(), to: None }
    }

    /// What follows is for the actor of that id, not for the root.
    #[must_use]
    pub fn to(self, actor: impl Into<String>) -> Self {
        Self { to: Some(actor.into()), ..self }
    }

    /// The next phase begins.
    ///
    /// # Errors
    /// The host's refusal; nothing has changed.
    pub fn advance(&mut self, data: data::Advance) -> Result<D::Answer, D::Refusal> {
        self.door.send(self.to.as_deref(), "ADVANCE", ::serde_json::to_value(data).unwrap_or_default(), &self.id, "orchestrator")
    }

}

