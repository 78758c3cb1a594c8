//! A call of an executor: the invocation, its configuration, and the host behind it.

use std::sync::Arc;
use std::time::Duration;

use charter_kernel::definition::ActorDecl;
use charter_kernel::{Auth, EffectId, Principal, PrincipalKind, Timestamp};
use serde_json::Value as Json;

use crate::clock::Clock;
use crate::config::ActorConfig;
use crate::executor::Fault;
use crate::folder::Folder;
use crate::host::{ActorEvent, CallHost, Delivery, RunUpdates};
use crate::secret::Secrets;

/// Maximum number of records that are read at a time.
const PAGE: usize = 256;

/// One attempt of an invocation. Cheap to clone.
#[derive(Clone)]
pub struct Call {
    /// The run.
    pub run: Arc<str>,
    /// The effect as text, `RUN/SEQ/INDEX`: the idempotency key.
    pub effect: Arc<str>,
    /// The effect.
    pub effect_id: EffectId,
    /// Id of the invocation.
    pub invocation: Arc<str>,
    /// Number of the attempt; the first is 1.
    pub attempt: u32,
    /// The input; it matches the actor's schema.
    pub input: Arc<Json>,
    /// When the attempt must be over.
    pub deadline: Timestamp,
    pub(crate) actor: Arc<ActorConfig>,
    folder: Arc<Folder>,
    host: Arc<dyn CallHost>,
    /// What the events of the actor must not contain.
    pub(crate) secrets: Arc<Secrets>,
}

impl Call {
    /// Creates the first attempt of an invocation, without a deadline. Hosts create calls;
    /// executors receive them.
    #[must_use]
    pub fn new(
        host: Arc<dyn CallHost>,
        actor: Arc<ActorConfig>,
        folder: Arc<Folder>,
        run: Arc<str>,
        effect_id: EffectId,
        invocation: Arc<str>,
        input: Arc<Json>,
    ) -> Call {
        let effect = effect_id.text(&run).into();
        let (attempt, deadline, secrets) = (1, Timestamp::MAX, Arc::default());
        Call { run, effect, effect_id, invocation, attempt, input, deadline, actor, folder, host, secrets }
    }

    /// The name of the actor in `actors`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.actor.name
    }

    /// The actor's declaration in the charter.
    #[must_use]
    pub fn actor(&self) -> &ActorDecl {
        &self.actor.decl
    }

    /// Returns a key of the actor's configuration; `None` if it is missing or `null`.
    #[must_use]
    pub fn config(&self, key: &str) -> Option<&Json> {
        self.actor.decl.config.get(key).filter(|v| !v.is_null())
    }

    /// The files next to the charter.
    #[must_use]
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The secrets that the actor was given. They are removed from its answer as a whole; what
    /// shortens or stores a text by itself removes them before.
    #[must_use]
    pub fn secrets(&self) -> &Arc<Secrets> {
        &self.secrets
    }

    /// The host.
    #[must_use]
    pub fn host(&self) -> &Arc<dyn CallHost> {
        &self.host
    }

    /// The host's clock.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        self.host.clock()
    }

    /// The time left until the deadline; zero once it has passed.
    #[must_use]
    pub fn left(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.deadline.since(self.clock().now()).0).unwrap_or(0))
    }

    /// Counts the invocations of this actor that the run requested before this one. Reads the
    /// journal: call it from a blocking thread.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn earlier(&self) -> Result<usize, Fault> {
        let mut count = 0usize;
        let mut from = 0u64;
        loop {
            let page = self.host.records(&self.run, from, PAGE).map_err(|e| Fault::new("journal", e.to_string()))?;
            for record in &page {
                for (effect, index) in record.effects.iter().zip(0u32..) {
                    if (record.seq, index) >= (self.effect_id.seq, self.effect_id.index) {
                        return Ok(count);
                    }
                    let text = |key: &str| effect.get(key).and_then(Json::as_str);
                    if text("kind") == Some("invoke") && text("src") == Some(self.name()) {
                        count = count.saturating_add(1);
                    }
                }
            }
            match page.last() {
                Some(last) => from = last.seq.saturating_add(1),
                None => return Ok(count),
            }
        }
    }

    /// The principal under which the actor sends events: its id, and the roles that the charter
    /// gives it (`as`). Models and tools are agents, everything else is a service.
    #[must_use]
    pub fn principal(&self) -> Principal {
        let policy = &self.actor.policy;
        let id = policy.id.as_deref().unwrap_or_else(|| self.name());
        let kind = match &*self.actor.kind {
            "model" | "tool" => PrincipalKind::Agent,
            _ => PrincipalKind::Service,
        };
        let by = Principal { roles: policy.roles.clone(), ..Principal::new(id, &[]) };
        by.of_kind(kind).authenticated(Auth::Local)
    }

    /// Sends an event to the run as [`Call::principal`], subject to the same rules as an event from
    /// outside. `key` distinguishes the events of one effect: sending again with the same key
    /// returns the first result, even after a restart.
    ///
    /// # Errors
    /// The event was not recorded. A refusal is recorded, so it is not an error.
    pub async fn send(&self, key: &str, to: Option<String>, r#type: &str, data: Json) -> Result<Delivery, Fault> {
        let event = ActorEvent {
            run: self.run.clone(),
            to,
            r#type: r#type.to_owned(),
            data: self.secrets.redact_json(data),
            by: self.principal(),
            id: format!("{}/{key}", self.effect),
        };
        self.host.clone().send(event).await
    }

    /// Subscribes to the records that the run gets from now on.
    #[must_use]
    pub fn updates(&self) -> Box<dyn RunUpdates> {
        self.host.updates(&self.run)
    }

    /// Copies the call with another input, for an actor of another kind.
    pub(crate) fn delegate(&self, actor: ActorConfig, input: Json) -> Call {
        Call { actor: Arc::new(actor), input: Arc::new(input), ..self.clone() }
    }
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Call({}, {}, attempt {})", self.effect, self.actor.name, self.attempt)
    }
}
