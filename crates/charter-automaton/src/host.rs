//! The executors of the embedded host: kind `automaton` (a part of a turn, with its adapter) and kind `skills` (a folder of Markdown files).

use charter_kernel::definition::ActorDecl;
use charter_runtime::{Boxed, Call, Executor, Fault, Folder, Options, Outcome};
use serde_json::Value as Json;

use crate::{
    Inference, MockInference, MockSigner, MockSkills, PARTS, PortError, Ports, Signer, Skill,
    SkillSource, StubInference, StubSigner, answer, read_skill,
};

/// Adds both kinds to a host.
#[must_use]
pub fn executors(options: Options) -> Options {
    options
        .executor("automaton", Parts)
        .executor("skills", Skills)
}

fn word<'a>(
    actor: &'a ActorDecl,
    key: &str,
    known: &[&str],
    default: &'a str,
) -> Result<&'a str, String> {
    match actor.config.get(key) {
        None => Ok(default),
        Some(Json::String(word)) if known.contains(&word.as_str()) => Ok(word),
        Some(other) => Err(format!(
            "`{key}` is one of {}, not `{other}`",
            known.join(", ")
        )),
    }
}

fn fault(error: &PortError) -> Fault {
    Fault::new(error.code, &error.message)
}

/// Kind `automaton`. Configuration: `part` (`context`, `inference`, `actions`, `persist`), `adapter` of the inference port and `signer`
/// (`mock` or `stub`).
#[derive(Debug, Clone, Copy, Default)]
pub struct Parts;

impl Parts {
    fn parts(
        actor: &ActorDecl,
    ) -> Result<(&str, &'static dyn Inference, &'static dyn Signer), String> {
        if actor.config.get("part").is_none() {
            return Err(format!(
                "`part` is missing; it is one of {}",
                PARTS.join(", ")
            ));
        }
        let part = word(actor, "part", &PARTS, "")?;
        let inference: &'static dyn Inference =
            match word(actor, "adapter", &["mock", "stub"], "mock")? {
                "stub" => &StubInference,
                _ => &MockInference,
            };
        let signer: &'static dyn Signer = match word(actor, "signer", &["mock", "stub"], "mock")? {
            "stub" => &StubSigner,
            _ => &MockSigner,
        };
        Ok((part, inference, signer))
    }
}

impl Executor for Parts {
    fn check(&self, _: &str, actor: &ActorDecl, _: &Folder) -> Result<(), String> {
        Parts::parts(actor).map(|_| ())
    }

    fn call(&self, call: Call) -> Boxed<'static, Result<Outcome, Fault>> {
        Box::pin(async move {
            let (part, inference, signer) =
                Parts::parts(call.actor()).map_err(|e| Fault::new("config", &e))?;
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
