//! An actor of kind `model`: its configuration, and its answer, which comes from one call or
//! several parallel calls.
//!
//! | key | meaning |
//! |---|---|
//! | `prompt` | the template, a path inside the charter's folder |
//! | `calls` | a list of objects, one for each parallel call; the answer is the list of their answers. The fields of an object are `{{call.NAME}}` in the template |
//! | `budget` | `{tokens, seconds}` of all calls together (50,000 and 120) |
//! | `maxTokens`, `temperature`, `effort`, `outputMode` | see [`Settings`] |
//! | `provider`, `model`, `fallback`, `headers` | which model is asked |
//! | `offline` | the answer when there is no model: a value in which strings may be expressions over `input`, `call` and `results` |
//! | `offlineTools` | events that these rules send before they answer; `results` is the list of what they gave |

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use charter_actors::{ConfigError, Fault, Folder};
use charter_kernel::Schema;
use charter_kernel::definition::ActorDecl;
use serde_json::Value as Json;

use crate::ask::{Budget, Question};
use crate::attachments;
use crate::budget::budget;
use crate::chain::ask_in_turn;
use crate::codes;
use crate::exchange::Exchange;
use crate::model::Model;
use crate::offline;
use crate::offline_tools::{self, OfflineEvent};
pub use crate::progress::Progress;
use crate::prompt::{Prompt, PromptTemplate};
use crate::providers::Selection;
use crate::schema;
use crate::settings::Settings;
use crate::tools::{Tool, Toolbox};
use crate::transport::Transport;
use crate::watching::Watching;

/// Keys of the configuration, besides those of [`Settings`].
pub const KEYS: [&str; 4] = ["prompt", "calls", "budget", "offline"];
/// Maximum number of parallel calls.
const MAX_CALLS: usize = 16;

/// The configuration of an actor of kind `model`.
#[derive(Debug, Clone)]
pub struct ModelActor {
    pub(crate) template: Option<PromptTemplate>,
    /// The configuration of each parallel call; `None` if there is a single call.
    pub(crate) calls: Option<Vec<Json>>,
    pub(crate) budget: Budget,
    pub(crate) settings: Settings,
    offline: Option<Json>,
    offline_tools: Vec<OfflineEvent>,
    pub(crate) selection: Selection,
    pub(crate) toolbox: Option<Toolbox>,
    attachments: Vec<Json>,
    /// Schema of the answer of one call.
    pub(crate) schema: Option<Json>,
}

/// The source of answers.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Source<'a> {
    /// The charter's offline rules.
    Offline,
    /// A model, those to ask if it does not answer, and the tools that they may call.
    Model(&'a Model, &'a [Model], &'a dyn Transport, &'a [Tool]),
}

impl ModelActor {
    /// Parses the configuration of an actor.
    ///
    /// # Errors
    /// A value is invalid, or the template cannot be read from the charter's folder.
    pub fn read(decl: &ActorDecl, folder: &Folder) -> Result<ModelActor, ConfigError> {
        let config = &decl.config;
        let template = match config.get("prompt") {
            None | Some(Json::Null) => None,
            Some(Json::String(path)) => {
                let text = folder.read(path)?;
                Some(PromptTemplate::parse(&text).map_err(|e| ConfigError::Other(format!("`{path}`: {e}")))?)
            }
            Some(other) => return Err(ConfigError::invalid("prompt", "a path inside the charter's folder", other)),
        };
        let calls = match config.get("calls") {
            None | Some(Json::Null) => None,
            Some(Json::Array(list)) if (1..=MAX_CALLS).contains(&list.len()) && list.iter().all(Json::is_object) => {
                Some(list.clone())
            }
            Some(other) => {
                return Err(ConfigError::invalid("calls", &format!("a list of 1 to {MAX_CALLS} objects"), other));
            }
        };
        let offline = config.get("offline").filter(|v| !v.is_null()).cloned();
        if let Some(rules) = &offline {
            offline::check_after(rules).map_err(|e| ConfigError::Other(format!("`offline`: {e}")))?;
        }
        if template.is_none() && offline.is_none() {
            return Err(ConfigError::missing("prompt", "a path inside the charter's folder; or give `offline` rules"));
        }
        let schema = match (&calls, &decl.output) {
            (None, output) => output.clone(),
            (Some(_), None) => None,
            (Some(_), Some(output)) => {
                let items = schema::items(output);
                let missing = || ConfigError::Other("`output` needs `items`: with `calls` the answer is a list".into());
                Some(items.ok_or_else(missing)?)
            }
        };
        if let Some(schema) = &schema {
            Schema::compile(schema).map_err(|e| ConfigError::Other(format!("`output`: {e}")))?;
        }
        let settings = Settings::read(decl)?;
        let toolbox = Toolbox::read(decl)?;
        let offline_tools = offline_tools::read(decl, toolbox.as_ref())?;
        if !offline_tools.is_empty() && offline.is_none() {
            return Err(ConfigError::missing("offline", "with `offlineTools`, the answer after them"));
        }
        Ok(ModelActor {
            template,
            calls,
            budget: budget(config.get("budget"))?,
            settings,
            offline,
            offline_tools,
            selection: Selection::read(decl)?,
            toolbox,
            attachments: attachments::read(decl, folder)?,
            schema,
        })
    }

    /// Whether the actor has offline rules, which answer if there is no model.
    #[must_use]
    pub fn has_offline_rules(&self) -> bool {
        self.offline.is_some()
    }

    /// Returns the answer and the exchange of each call. `within` is the time limit of the host.
    pub fn answer(
        &self,
        source: Source<'_>,
        input: &Json,
        within: Duration,
        progress: &dyn Progress,
    ) -> (Result<Json, Fault>, Vec<Exchange>) {
        let one = [Json::Null];
        let calls: &[Json] = self.calls.as_deref().unwrap_or(&one);
        let (model, fallback, transport, tools) = match source {
            Source::Model(model, fallback, transport, tools) => (model, fallback, transport, tools),
            Source::Offline => return (self.offline(calls, input, progress), Vec::new()),
        };
        let Some(template) = &self.template else {
            let fault = Fault::new(codes::CONFIG, "the actor has no `prompt`, so it can only answer offline");
            return (Err(fault), Vec::new());
        };
        let mut prompts = Vec::new();
        for call in calls {
            let rendered = template.render(input, call).map_err(|e| Fault::new(codes::CONFIG, e.message));
            let prompt = rendered.and_then(|prompt| {
                let attachments = attachments::of(&self.attachments, input, call)?;
                attachments.iter().try_for_each(|one| progress.attached(&one.content()))?;
                Ok(Prompt { attachments: attachments.into(), ..prompt })
            });
            match prompt {
                Ok(prompt) => prompts.push(prompt),
                Err(fault) => return (Err(fault), Vec::new()),
            }
        }
        let shares = u64::try_from(prompts.len()).unwrap_or(1).max(1);
        let budget = Budget {
            tokens: self.budget.tokens.checked_div(shares).unwrap_or_default(),
            time: self.budget.time.min(within),
        };
        let raise = if within < self.budget.time { "`timeout` or `attemptTimeout`" } else { "`budget.seconds`" };
        let failed = AtomicBool::new(false);
        let within = tracing::Span::current();
        let results: Vec<(Result<Json, Fault>, Vec<Exchange>)> = std::thread::scope(|scope| {
            let threads: Vec<_> = prompts
                .iter()
                .enumerate()
                .map(|(call, prompt)| {
                    let (failed, within) = (&failed, &within);
                    let (schema, settings) = (self.schema.as_ref(), &self.settings);
                    let rounds = self.toolbox.as_ref().map_or(0, |toolbox| toolbox.rounds);
                    let question = Question { model, prompt, schema, settings, budget, tools, rounds };
                    scope.spawn(move || {
                        let watcher = Watching { call, progress, failed };
                        let result = within.in_scope(|| ask_in_turn(&question, fallback, raise, transport, &watcher));
                        if result.0.is_err() {
                            failed.store(true, Ordering::Relaxed);
                        }
                        result
                    })
                })
                .collect();
            let broken = || (Err(Fault::new(codes::UNAVAILABLE, "the call was interrupted").retryable()), Vec::new());
            threads.into_iter().map(|t| t.join().unwrap_or_else(|_| broken())).collect()
        });
        let (answers, exchanges): (Vec<_>, Vec<_>) = results.into_iter().unzip();
        (self.together(answers), exchanges.into_iter().flatten().collect())
    }

    fn together(&self, answers: Vec<Result<Json, Fault>>) -> Result<Json, Fault> {
        let mut list = Vec::new();
        let mut first: Option<Fault> = None;
        for (call, answer) in answers.into_iter().enumerate() {
            match answer {
                Ok(answer) => list.push(answer),
                Err(fault) => {
                    let fault = match &self.calls {
                        Some(_) => fault.with("call", call),
                        None => fault,
                    };
                    // A call that was stopped because another one failed is not the cause of the
                    // failure.
                    let better = first.as_ref().is_none_or(|f| f.code == codes::CANCELLED);
                    if better {
                        first = Some(fault);
                    }
                }
            }
        }
        match (first, &self.calls) {
            (Some(fault), _) => Err(fault),
            (None, Some(_)) => Ok(Json::Array(list)),
            (None, None) => Ok(list.pop().unwrap_or_default()),
        }
    }

    fn offline(&self, calls: &[Json], input: &Json, progress: &dyn Progress) -> Result<Json, Fault> {
        let Some(rules) = &self.offline else {
            return Err(Fault::new(
                codes::CONFIG,
                "no model is configured, and the actor has no `offline` rules; name a model (`charter run --help` says how)",
            ));
        };
        let answers = calls.iter().enumerate().map(|call| {
            let results = offline_tools::send(&self.offline_tools, input, call, progress)?;
            offline::answer_after(rules, input, call.1, &results)
                .map_err(|e| Fault::new(codes::CONFIG, format!("`offline`: {e}")))
        });
        self.together(answers.collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use charter_actors::Folder;
    use charter_kernel::definition::ActorDecl;
    use serde_json::{Value as Json, json};

    use super::{ModelActor, Source};
    use crate::codes;
    use crate::model::Model;
    use crate::transport::{Request, Response, Transport, TransportError};

    fn decl(output: Json, config: Json) -> ActorDecl {
        ActorDecl {
            kind: "model".into(),
            output: Some(output),
            config: serde_json::from_value(config).unwrap(),
            ..ActorDecl::default()
        }
    }

    fn read(config: Json) -> Result<ModelActor, String> {
        let files = [("p.md".to_owned(), "You are {{call.name}}.\n---\n{{q}}".to_owned())];
        let folder = Folder::Texts(Arc::new(files.into()));
        let output = json!({"type": "array", "items": {"type": "object", "required": ["n"]}});
        ModelActor::read(&decl(output, config), &folder).map_err(|e| e.to_string())
    }

    /// Answers with the index of the question, and fails for a question that contains a given text.
    struct Counting(Mutex<Vec<String>>, Option<&'static str>);

    impl Transport for Counting {
        fn send(
            &self,
            request: &Request,
            _: Duration,
            _: &mut dyn FnMut(&str) -> bool,
        ) -> Result<Response, TransportError> {
            self.0.lock().unwrap().push(request.body.clone());
            if self.1.is_some_and(|bad| request.body.contains(bad)) {
                return Ok(Response { status: 400, ..Response::default() });
            }
            let n = ["You are a", "You are b"].iter().position(|who| request.body.contains(who));
            let body = json!({"choices": [{"message": {"content": format!("{{\"n\": {}}}", n.unwrap())}, "finish_reason": "stop"}]});
            Ok(Response { status: 200, body: body.to_string(), ..Response::default() })
        }
    }

    #[test]
    fn parallel_calls_answer_in_order() {
        let actor = read(json!({"prompt": "p.md", "calls": [{"name": "a"}, {"name": "b"}]})).unwrap();
        let model = Model::parse("openai:m").unwrap();
        let transport = Counting(Mutex::default(), None);
        let (answer, exchanges) =
            actor.answer(Source::Model(&model, &[], &transport, &[]), &json!({"q": 1}), Duration::from_secs(5), &());
        assert_eq!(answer.unwrap(), json!([{"n": 0}, {"n": 1}]));
        assert_eq!(exchanges.len(), 2);
        assert_ne!(exchanges[0].prompt, exchanges[1].prompt);

        let broken = Counting(Mutex::default(), Some("You are b"));
        let (answer, _) =
            actor.answer(Source::Model(&model, &[], &broken, &[]), &json!({"q": 1}), Duration::from_secs(5), &());
        let fault = answer.unwrap_err();
        assert_eq!((fault.code.as_str(), &fault.details["call"]), (codes::REQUEST, &json!(1)));
    }

    #[test]
    fn offline() {
        let actor =
            read(json!({"offline": {"n": "= call.name + string(input.q)"}, "calls": [{"name": "a"}, {"name": "b"}]}))
                .unwrap();
        let (answer, exchanges) = actor.answer(Source::Offline, &json!({"q": 1}), Duration::from_secs(1), &());
        assert_eq!((answer.unwrap(), exchanges.len()), (json!([{"n": "a1"}, {"n": "b1"}]), 0));
        let without = read(json!({"prompt": "p.md"})).unwrap();
        let fault = without.answer(Source::Offline, &json!({}), Duration::from_secs(1), &()).0.unwrap_err();
        assert_eq!(fault.code, codes::CONFIG);
    }

    #[test]
    fn invalid_configurations_are_rejected() {
        for (config, message) in [
            (json!({}), "missing key `prompt`: a path inside the charter's folder; or give `offline` rules"),
            (json!({"prompt": "x.md"}), "no file `x.md` beside the charter"),
            (json!({"prompt": 1}), "invalid `prompt`: expected a path inside the charter's folder, found `1`"),
            (
                json!({"prompt": "p.md", "temperature": 3}),
                "invalid `temperature`: expected a number from 0 to 2, found `3`",
            ),
            (
                json!({"prompt": "p.md", "effort": "huge"}),
                "invalid `effort`: expected `low`, `medium` or `high`, found `\"huge\"`",
            ),
            (
                json!({"prompt": "p.md", "maxTokens": 1}),
                "invalid `maxTokens`: expected a number of at least 16, found `1`",
            ),
            (json!({"prompt": "p.md", "calls": []}), "invalid `calls`: expected a list of 1 to 16 objects, found `[]`"),
            (
                json!({"prompt": "p.md", "budget": {"token": 1}}),
                "unknown key `budget.token`; did you mean `budget.tokens`?",
            ),
            (
                json!({"prompt": "p.md", "budget": {"seconds": 0}}),
                "invalid `budget.seconds`: expected a number above 0 and at most 86400, found `0`",
            ),
        ] {
            assert_eq!(read(config).unwrap_err(), message);
        }
        assert!(read(json!({"offline": "= ("})).unwrap_err().starts_with("`offline`: invalid expression `(`"));
    }
}
