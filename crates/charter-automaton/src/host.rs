//! The executors of the embedded host: kind `automaton` (a part of a turn, with its adapter) and
//! kind `skills` (a folder of Markdown files).

use std::sync::Arc;

use charter_actors::{
    Beside, BoxFuture, Call, ConfigError, Executor, Executors, Fault, Folder, FolderError, NamedFile, Outcome,
};
use charter_kernel::definition::ActorDecl;
use serde_json::Value as Json;

use crate::{MockSkills, Part, PortError, Ports, Skill, SkillSource, answer, read_skills};

/// Adds both kinds. If there is already an executor of kind `model`, inference can use it.
pub fn add_executors(executors: &mut Executors) {
    let model = executors.get("model").cloned();
    executors.insert("automaton".to_owned(), Arc::new(Parts { model }));
    executors.insert("skills".to_owned(), Arc::new(Skills));
}

fn fault(error: &PortError) -> Fault {
    Fault::new(error.code, &error.message)
}

/// Kind `automaton`. Configuration: `part` (`context`, `inference`, `actions`, `persist`), `signer`
/// of the actions (one of [`SIGNERS`](crate::SIGNERS)), and `prompt` of the inference. The input of
/// the inference names its `adapter` (one of [`ADAPTERS`](crate::ADAPTERS)).
#[derive(Clone, Default)]
pub struct Parts {
    /// The executor that the adapter `model` calls.
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

impl Executor for Parts {
    fn check(&self, _: &str, actor: &ActorDecl, _: &Folder) -> Result<(), ConfigError> {
        Part::of(actor).map(drop).map_err(|e| ConfigError::Other(e.to_string()))
    }

    fn files(&self, name: &str, actor: &ActorDecl, beside: &Beside<'_>) -> Result<Vec<NamedFile>, ConfigError> {
        // Only the model reads files, and only if there is one.
        self.model.as_ref().map_or(Ok(Vec::new()), |model| model.files(name, actor, beside))
    }

    fn models(&self, name: &str, actor: &ActorDecl, beside: &Beside<'_>) -> Result<Vec<String>, ConfigError> {
        // Which adapter a run uses is part of its input; these are the models that it may ask.
        match &self.model {
            Some(model) if actor.config.get("part").and_then(Json::as_str) == Some("inference") => {
                model.models(name, actor, beside)
            }
            _ => Ok(Vec::new()),
        }
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        let model = self.model.clone();
        Box::pin(async move {
            let config = |why: &dyn std::fmt::Display| Fault::new("config", why.to_string());
            let part = Part::of(call.actor()).map_err(|e| config(&e))?;
            let Some(inference) = part.inference(&call.input).map_err(|e| config(&e))? else {
                let none = || config(&"this host has no models; choose the adapter `mock` or `stub`");
                return charter_actors::perform(model.ok_or_else(none)?.as_ref(), call).await;
            };
            let ports = Ports { inference, signer: part.signer, skills: &MockSkills };
            answer(part.name, &call.input, &ports).map(Outcome::Done).map_err(|e| fault(&e))
        })
    }
}

/// Kind `skills`. Configuration: `folder`, a folder next to the charter; each `.md` file in it is a
/// skill.
#[derive(Debug, Clone, Copy, Default)]
pub struct Skills;

/// Skills from a folder next to the charter.
#[derive(Debug, Clone)]
pub struct FolderSkills<'f> {
    /// The files next to the charter.
    pub folder: &'f Folder,
    /// The name of the folder.
    pub name: &'f str,
}

/// Lists the files of a folder that are skills.
fn skill_files(folder: &Folder, name: &str) -> Result<Vec<String>, FolderError> {
    Ok(folder.list(name)?.into_iter().filter(|file| file.ends_with(".md")).collect())
}

impl SkillSource for FolderSkills<'_> {
    fn skills(&self) -> Result<Vec<Skill>, PortError> {
        let wrong = |e: FolderError| PortError { code: "skills", message: e.to_string() };
        let mut files = Vec::new();
        for file in skill_files(self.folder, self.name).map_err(wrong)? {
            let text = self.folder.read(&file).map_err(wrong)?;
            files.push((file, text));
        }
        read_skills(files)
    }
}

impl Executor for Skills {
    fn check(&self, _: &str, actor: &ActorDecl, _: &Folder) -> Result<(), ConfigError> {
        match actor.config.get("folder") {
            Some(Json::String(_)) => Ok(()),
            _ => Err(ConfigError::missing("folder", "the folder beside the charter that holds the skills")),
        }
    }

    fn files(&self, _: &str, actor: &ActorDecl, beside: &Beside<'_>) -> Result<Vec<NamedFile>, ConfigError> {
        let name = actor.config.get("folder").and_then(Json::as_str).unwrap_or_default();
        Ok(skill_files(beside.folder, name)?.into_iter().map(NamedFile::Read).collect())
    }

    fn is_idempotent(&self) -> bool {
        true
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        Box::pin(async move {
            let name = call.config("folder").and_then(Json::as_str).unwrap_or_default();
            let source = FolderSkills { folder: call.folder(), name };
            let skills = source.skills().map_err(|e| fault(&e))?;
            Ok(Outcome::Done(serde_json::json!({"skills": skills})))
        })
    }
}
