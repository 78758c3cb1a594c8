//! The executors of the embedded host: kind `automaton` (a part of a turn, with its adapter) and kind `skills` (a folder of Markdown files).

use std::sync::Arc;

use charter_kernel::definition::ActorDecl;
use charter_runtime::{Boxed, Call, Executor, Fault, Folder, Options, Outcome};
use serde_json::Value as Json;

use crate::{
    Inference, MockInference, MockSigner, MockSkills, PARTS, PortError, Ports, Signer, Skill,
    SkillSource, StubInference, StubSigner, answer, read_skill,
};

/// Adds both kinds to a host. If the host has an executor of kind `model` already, inference can be asked of it, too.
#[must_use]
pub fn executors(options: Options) -> Options {
    let model = options.executors.get("model").cloned();
    options
        .executor("automaton", Parts { model })
        .executor("skills", Skills)
}

fn word<'a>(place: Option<&'a Json>, key: &str, known: &[&'static str]) -> Result<&'a str, String> {
    match place {
        Some(Json::String(word)) if known.contains(&word.as_str()) => Ok(word),
        Some(other) => Err(format!(
            "`{key}` is one of {}, not `{other}`",
            known.join(", ")
        )),
        None => Err(format!(
            "`{key}` is missing; it is one of {}",
            known.join(", ")
        )),
    }
}

fn fault(error: &PortError) -> Fault {
    Fault::new(error.code, &error.message)
}

/// Adapters of the inference port. `model` asks the host's executor of kind `model`, with the actor's `prompt`.
pub const ADAPTERS: [&str; 3] = ["mock", "stub", "model"];
/// Adapters of the signer.
pub const SIGNERS: [&str; 2] = ["mock", "stub"];

/// Kind `automaton`. Configuration: `part` (`context`, `inference`, `actions`, `persist`), `signer` of the actions (one of [`SIGNERS`]), and
/// `prompt` of the inference. The input of the inference names its `adapter` (one of [`ADAPTERS`]).
#[derive(Clone, Default)]
pub struct Parts {
    /// Asked by the adapter `model`.
    pub model: Option<Arc<dyn Executor>>,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let model = match self.model {
            Some(_) => "with models",
            None => "without models",
        };
        write!(f, "Parts({model})")
    }
}

/// What the configuration of an actor says.
fn part(actor: &ActorDecl) -> Result<(&str, &'static dyn Signer), String> {
    let part = word(actor.config.get("part"), "part", &PARTS)?;
    let signer: &'static dyn Signer = match actor.config.get("signer") {
        None => &MockSigner,
        given => match word(given, "signer", &SIGNERS)? {
            "stub" => &StubSigner,
            _ => &MockSigner,
        },
    };
    Ok((part, signer))
}

impl Executor for Parts {
    fn check(&self, _: &str, actor: &ActorDecl, _: &Folder) -> Result<(), String> {
        part(actor).map(|_| ())
    }

    fn call(&self, call: Call) -> Boxed<'static, Result<Outcome, Fault>> {
        let model = self.model.clone();
        Box::pin(async move {
            let config = |why: String| Fault::new("config", &why);
            let (part, signer) = part(call.actor()).map_err(config)?;
            let inference: &'static dyn Inference = match part {
                "inference" => {
                    match word(call.input.get("adapter"), "adapter", &ADAPTERS).map_err(config)? {
                        "model" => {
                            let model = model.ok_or_else(|| {
                                config(
                                    "this host has no models; choose the adapter `mock` or `stub`"
                                        .into(),
                                )
                            })?;
                            return model.call(call).await;
                        }
                        "stub" => &StubInference,
                        _ => &MockInference,
                    }
                }
                _ => &StubInference,
            };
            let ports = Ports {
                inference,
                signer,
                skills: &MockSkills,
            };
            answer(part, &call.input, &ports)
                .map(Outcome::Done)
                .map_err(|e| fault(&e))
        })
    }
}

/// Kind `skills`. Configuration: `folder`, a folder beside the charter; each `.md` file in it is a skill.
#[derive(Debug, Clone, Copy, Default)]
pub struct Skills;

/// Skills from a folder beside the charter.
#[derive(Debug, Clone)]
pub struct FolderSkills<'f> {
    /// The files beside the charter.
    pub folder: &'f Folder,
    /// The folder among them.
    pub name: &'f str,
}

impl SkillSource for FolderSkills<'_> {
    fn skills(&self) -> Result<Vec<Skill>, PortError> {
        let wrong = |message: String| PortError {
            code: "skills",
            message,
        };
        let mut skills: Vec<Skill> = Vec::new();
        for file in self.folder.list(self.name).map_err(wrong)? {
            if !file.ends_with(".md") {
                continue;
            }
            let text = self.folder.read(&file).map_err(wrong)?;
            let skill = read_skill(&file, &text).map_err(|e| wrong(e.to_string()))?;
            if let Some(other) = skills.iter().find(|s| s.name == skill.name) {
                return Err(wrong(format!(
                    "`{file}` and `{}` are both called `{}`",
                    other.source, skill.name
                )));
            }
            skills.push(skill);
        }
        skills.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(skills)
    }
}

impl Executor for Skills {
    fn check(&self, _: &str, actor: &ActorDecl, _: &Folder) -> Result<(), String> {
        match actor.config.get("folder") {
            Some(Json::String(_)) => Ok(()),
            _ => Err(
                "`folder` is missing: the folder beside the charter that holds the skills".into(),
            ),
        }
    }

    fn is_idempotent(&self) -> bool {
        true
    }

    fn call(&self, call: Call) -> Boxed<'static, Result<Outcome, Fault>> {
        Box::pin(async move {
            let name = call
                .config("folder")
                .and_then(Json::as_str)
                .unwrap_or_default();
            let source = FolderSkills {
                folder: call.folder(),
                name,
            };
            let skills = source.skills().map_err(|e| fault(&e))?;
            Ok(Outcome::Done(serde_json::json!({"skills": skills})))
        })
    }
}
