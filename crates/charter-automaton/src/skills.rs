//! Skills: Markdown files with front matter, in which unknown or malformed lines are errors.

use serde::{Deserialize, Serialize};

use crate::PortError;

/// A skill, as in the charter's event `InstallSkill`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skill {
    /// `[a-z][a-z0-9-]*`.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// What to do.
    pub instructions: String,
    /// Whether it is included in the context of a turn.
    pub enabled: bool,
    /// The source of the skill, such as a file name.
    pub source: String,
    /// The version of the skill.
    pub version: String,
}

/// The skill port.
pub trait SkillSource {
    /// Returns all skills, sorted by name.
    ///
    /// # Errors
    /// A skill cannot be read; in that case no skill is returned.
    fn skills(&self) -> Result<Vec<Skill>, PortError>;
}

/// Parses skills from files, given as name and text, and sorts them by name.
///
/// # Errors
/// A file is not a valid skill, or two skills have the same name.
pub fn read_skills(
    files: impl IntoIterator<Item = (impl AsRef<str>, impl AsRef<str>)>,
) -> Result<Vec<Skill>, PortError> {
    let wrong = |message: String| PortError { code: "skills", message };
    let mut skills: Vec<Skill> = Vec::new();
    for (file, text) in files {
        let file = file.as_ref();
        let skill = read_skill(file, text.as_ref()).map_err(|e| wrong(e.to_string()))?;
        if let Some(other) = skills.iter().find(|s| s.name == skill.name) {
            return Err(wrong(format!("`{file}` and `{}` have the same skill name `{}`", other.source, skill.name)));
        }
        skills.push(skill);
    }
    skills.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(skills)
}

/// Two fixed skills, for tests and demonstrations.
#[derive(Debug, Clone, Copy, Default)]
pub struct MockSkills;

impl SkillSource for MockSkills {
    fn skills(&self) -> Result<Vec<Skill>, PortError> {
        let skill = |name: &str, description: &str, instructions: &str| Skill {
            name: name.into(),
            description: description.into(),
            instructions: instructions.into(),
            enabled: true,
            source: "mock".into(),
            version: "1".into(),
        };
        Ok(vec![
            skill("greet", "when somebody says hello", "Greet back, in one sentence."),
            skill("note", "when something is worth keeping", "Write a note with the fact and where it comes from."),
        ])
    }
}

/// Why a file is not a valid skill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{file}`, line {line}: {message}")]
pub struct SkillError {
    /// The file name, as given.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The message.
    pub message: String,
}

/// Parses a skill: front matter between two lines `---` with `name`, `description` and optionally
/// `version` and `enabled`, one per line, followed by the instructions.
///
/// # Errors
/// The file is not a valid skill; the error has the line and the reason. Unknown keys are refused.
pub fn read_skill(file: &str, text: &str) -> Result<Skill, SkillError> {
    let wrong = |line: usize, message: &str| SkillError { file: file.into(), line, message: message.into() };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines().zip(1usize..);
    if lines.next().map(|(line, _)| line.trim_end()) != Some("---") {
        return Err(wrong(1, "expected front matter between two lines `---` at the start of the skill"));
    }
    let (mut name, mut description, mut version, mut enabled) = (None, None, None, None);
    let mut end = None;
    for (line, number) in lines.by_ref() {
        let line = line.trim_end();
        if line == "---" {
            end = Some(number);
            break;
        }
        if line.trim_start().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let Some((key, value)) = line.split_once(':') else {
            return Err(wrong(number, "expected `key: value`"));
        };
        let value = unquoted(value.trim());
        let place = match key.trim() {
            "name" => &mut name,
            "description" => &mut description,
            "version" => &mut version,
            "enabled" => &mut enabled,
            other => {
                return Err(wrong(
                    number,
                    &format!("unknown key `{other}`; expected `name`, `description`, `version` or `enabled`"),
                ));
            }
        };
        if place.replace((value.to_owned(), number)).is_some() {
            return Err(wrong(number, &format!("duplicate key `{}`", key.trim())));
        }
    }
    let Some(end) = end else {
        return Err(wrong(text.lines().count().max(1), "the front matter has no closing line `---`"));
    };
    let instructions: Vec<&str> = lines.map(|(line, _)| line).collect();
    let instructions = instructions.join("\n").trim().to_owned();
    if instructions.is_empty() {
        return Err(wrong(end, "no instructions after the front matter"));
    }
    let (name, at) = name.ok_or_else(|| wrong(end, "missing `name` in the front matter"))?;
    let mut letters = name.chars();
    let fine = letters.next().is_some_and(|c| c.is_ascii_lowercase())
        && letters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && name.len() <= 64;
    if !fine {
        return Err(wrong(
            at,
            &format!(
                "invalid skill name `{name}`: use at most 64 lowercase letters, digits and `-`, starting with a letter"
            ),
        ));
    }
    let (description, at) = description.ok_or_else(|| wrong(end, "missing `description` in the front matter"))?;
    if description.is_empty() {
        return Err(wrong(at, "`description` is empty"));
    }
    let enabled = match &enabled {
        None => true,
        Some((value, _)) if value == "true" => true,
        Some((value, _)) if value == "false" => false,
        Some((value, at)) => {
            return Err(wrong(*at, &format!("invalid `enabled` `{value}`: expected `true` or `false`")));
        }
    };
    Ok(Skill {
        name,
        description,
        instructions,
        enabled,
        source: file.into(),
        version: version.map_or_else(|| "1".into(), |(v, _)| v),
    })
}

fn unquoted(value: &str) -> &str {
    let inside = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::{MockSkills, SkillSource, read_skill, read_skills};

    const GREET: &str = "---\nname: greet\ndescription: \"when: somebody says hello\"\nversion: 1.2\n---\n\nGreet back.\n--- not the end\n";

    #[test]
    fn a_skill_is_read() {
        let skill = read_skill("greet.md", GREET).unwrap();
        assert_eq!((skill.name.as_str(), skill.version.as_str(), skill.enabled), ("greet", "1.2", true));
        assert_eq!(skill.description, "when: somebody says hello");
        assert_eq!(skill.instructions, "Greet back.\n--- not the end");
        // CR LF line endings are accepted.
        assert_eq!(read_skill("greet.md", &GREET.replace('\n', "\r\n")).unwrap().name, "greet");
    }

    #[test]
    fn errors_have_a_line() {
        for (text, said) in [
            ("", "line 1: expected front matter"),
            ("# Greet\n", "line 1: expected front matter"),
            ("---\nname: greet\n", "line 2: the front matter has no closing line"),
            ("---\nname: greet\n---\nx", "line 3: missing `description`"),
            ("---\nname: Greet me\ndescription: x\n---\nx", "line 2: invalid skill name `Greet me`"),
            ("---\nname: a\nname: b\ndescription: x\n---\nx", "line 3: duplicate key `name`"),
            ("---\nname: a\nroles: [controller]\n---\nx", "line 3: unknown key `roles`"),
            ("---\nname: a\ndescription: x\nenabled: maybe\n---\nx", "line 4: invalid `enabled` `maybe`"),
            ("---\nname: a\ndescription: x\n---\n \n", "line 4: no instructions"),
        ] {
            let error = read_skill("x.md", text).unwrap_err().to_string();
            assert!(error.contains(said), "{text:?}: {error}");
        }
    }

    #[test]
    fn skills_are_sorted_and_unique() {
        let note = GREET.replace("greet", "a-note");
        let skills = read_skills([("1.md", GREET), ("2.md", note.as_str())]).unwrap();
        let names: Vec<&str> = skills.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["a-note", "greet"]);
        let duplicate = read_skills([("1.md", GREET), ("2.md", GREET)]).unwrap_err();
        assert_eq!(duplicate.code, "skills");
        assert_eq!(duplicate.message, "`2.md` and `1.md` have the same skill name `greet`");
    }

    #[test]
    fn the_mock_is_deterministic() {
        assert_eq!(MockSkills.skills().unwrap(), MockSkills.skills().unwrap());
    }
}
