//! Skills: Markdown with front matter, read strictly.

use serde::{Deserialize, Serialize};

use crate::PortError;

/// A skill, as the charter takes it (`InstallSkill`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skill {
    /// `[a-z][a-z0-9-]*`.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// What to do.
    pub instructions: String,
    /// Whether it is part of the context of a turn.
    pub enabled: bool,
    /// Where it comes from.
    pub source: String,
    /// Its version.
    pub version: String,
}

/// Where skills come from.
pub trait SkillSource {
    /// All of them, in order of their names.
    ///
    /// # Errors
    /// One that cannot be read: all or none.
    fn skills(&self) -> Result<Vec<Skill>, PortError>;
}

/// The skills in files: name and text of each, in order of the skills' names.
///
/// # Errors
/// A file is no skill, or two have the same name.
pub fn read_skills(
    files: impl IntoIterator<Item = (impl AsRef<str>, impl AsRef<str>)>,
) -> Result<Vec<Skill>, PortError> {
    let wrong = |message: String| PortError { code: "skills", message };
    let mut skills: Vec<Skill> = Vec::new();
    for (file, text) in files {
        let file = file.as_ref();
        let skill = read_skill(file, text.as_ref()).map_err(|e| wrong(e.to_string()))?;
        if let Some(other) = skills.iter().find(|s| s.name == skill.name) {
            return Err(wrong(format!("`{file}` and `{}` are both called `{}`", other.source, skill.name)));
        }
        skills.push(skill);
    }
    skills.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(skills)
}

/// Two skills that are always there, for tests and for trying it out.
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

/// Why a text is no skill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{file}`, line {line}: {message}")]
pub struct BadSkill {
    /// The file, as it was given.
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    /// What is wrong and what would be right.
    pub message: String,
}

/// Reads a skill: front matter between two lines `---` with `name`, `description` and, if wanted, `version` and `enabled`, a line each;
/// then the instructions.
///
/// # Errors
/// The line, and what would be right. Nothing is guessed: a key that is not known is refused.
pub fn read_skill(file: &str, text: &str) -> Result<Skill, BadSkill> {
    let wrong = |line: usize, message: &str| BadSkill { file: file.into(), line, message: message.into() };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines().zip(1usize..);
    if lines.next().map(|(line, _)| line.trim_end()) != Some("---") {
        return Err(wrong(1, "a skill begins with a line `---`, its front matter and a line `---`"));
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
            return Err(wrong(number, "a line of the front matter is `key: value`"));
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
                    &format!("`{other}` is not known here; there are `name`, `description`, `version` and `enabled`"),
                ));
            }
        };
        if place.replace((value.to_owned(), number)).is_some() {
            return Err(wrong(number, &format!("`{}` is there twice", key.trim())));
        }
    }
    let Some(end) = end else {
        return Err(wrong(text.lines().count().max(1), "the front matter does not end: a line `---` is missing"));
    };
    let instructions: Vec<&str> = lines.map(|(line, _)| line).collect();
    let instructions = instructions.join("\n").trim().to_owned();
    if instructions.is_empty() {
        return Err(wrong(end, "there are no instructions behind the front matter"));
    }
    let (name, at) = name.ok_or_else(|| wrong(end, "`name` is missing in the front matter"))?;
    let mut letters = name.chars();
    let fine = letters.next().is_some_and(|c| c.is_ascii_lowercase())
        && letters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && name.len() <= 64;
    if !fine {
        return Err(wrong(
            at,
            &format!("`{name}` is no name: small letters, digits and `-`, a letter first, at most 64"),
        ));
    }
    let (description, at) = description.ok_or_else(|| wrong(end, "`description` is missing in the front matter"))?;
    if description.is_empty() {
        return Err(wrong(at, "`description` is empty"));
    }
    let enabled = match &enabled {
        None => true,
        Some((value, _)) if value == "true" => true,
        Some((value, _)) if value == "false" => false,
        Some((value, at)) => {
            return Err(wrong(*at, &format!("`enabled` is `true` or `false`, not `{value}`")));
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
    fn a_skill_is_read_whole() {
        let skill = read_skill("greet.md", GREET).unwrap();
        assert_eq!((skill.name.as_str(), skill.version.as_str(), skill.enabled), ("greet", "1.2", true));
        assert_eq!(skill.description, "when: somebody says hello");
        assert_eq!(skill.instructions, "Greet back.\n--- not the end");
        // Windows' line ends change nothing.
        assert_eq!(read_skill("greet.md", &GREET.replace('\n', "\r\n")).unwrap().name, "greet");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, said) in [
            ("", "line 1: a skill begins with"),
            ("# Greet\n", "line 1: a skill begins with"),
            ("---\nname: greet\n", "line 2: the front matter does not end"),
            ("---\nname: greet\n---\nx", "line 3: `description` is missing"),
            ("---\nname: Greet me\ndescription: x\n---\nx", "line 2: `Greet me` is no name"),
            ("---\nname: a\nname: b\ndescription: x\n---\nx", "line 3: `name` is there twice"),
            ("---\nname: a\nroles: [controller]\n---\nx", "line 3: `roles` is not known"),
            ("---\nname: a\ndescription: x\nenabled: maybe\n---\nx", "line 4: `enabled` is"),
            ("---\nname: a\ndescription: x\n---\n \n", "line 4: there are no instructions"),
        ] {
            let error = read_skill("x.md", text).unwrap_err().to_string();
            assert!(error.contains(said), "{text:?}: {error}");
        }
    }

    #[test]
    fn skills_come_in_order_of_their_names_and_none_twice() {
        let note = GREET.replace("greet", "a-note");
        let skills = read_skills([("1.md", GREET), ("2.md", note.as_str())]).unwrap();
        let names: Vec<&str> = skills.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["a-note", "greet"]);
        let twice = read_skills([("1.md", GREET), ("2.md", GREET)]).unwrap_err();
        assert_eq!(twice.code, "skills");
        assert_eq!(twice.message, "`2.md` and `1.md` are both called `greet`");
    }

    #[test]
    fn the_mock_gives_the_same_each_time() {
        assert_eq!(MockSkills.skills().unwrap(), MockSkills.skills().unwrap());
    }
}
