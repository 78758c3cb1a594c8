//! What a command line would do.
//!
//! A command line is read by a small parser of its own, which reads less than a shell does, and is
//! then followed: in which folder each command runs, what its words are, what its program does with
//! its arguments. Whatever is not read or not known with certainty makes the call opaque, with the
//! reason. A description may say more than a command does, never less.

mod builtins;
mod compound;
mod environment;
mod expand;
mod git;
mod git_bare;
mod git_changes;
mod git_options;
mod git_paths;
mod git_refs;
mod git_remotes;
mod git_settings;
mod git_show;
mod git_show_options;
mod lex;
mod network;
mod options;
mod parse;
mod readers;
mod redirect;
mod scripts;
mod sed;
mod sequence;
mod shell;
mod simple;
mod syntax;
mod variables;
mod wrappers;
mod writers;

use std::path::Path;

pub(crate) use network::host;
use shell::Shell;
use syntax::{Kind, List, Operator};

use crate::data::{Description, SimpleCommand};
use crate::path;
use crate::workspace::Workspace;

/// Adds what a command line does to a description. `waits` is whether the result of the call is
/// that of the command line.
pub(crate) fn describe(description: &mut Description, workspace: &Workspace, cwd: &Path, text: &str, waits: bool) {
    if waits && is_test(workspace, cwd, text) {
        // The host runs those that count. What these do cannot be seen.
        description.does.test = !workspace.host_tests;
        description.does.run = workspace.host_tests;
        description.does.command = true;
        description.command(SimpleCommand {
            program: text.to_owned(),
            cwd: Some(workspace.root.to_string_lossy().into_owned()),
            does: vec![if workspace.host_tests { "run" } else { "test" }],
            ..SimpleCommand::default()
        });
        return;
    }
    description.does.command = true;
    let start = path::folder(workspace, cwd, ".").unwrap_or_else(|_| cwd.to_path_buf());
    let mut shell = Shell::new(description, workspace, start);
    shell.text(text);
    shell.check_repositories();
    let commits = description.does.commit;
    description.does.commit_tree = commits && !description.commits_index;
}

/// Whether a command line is the project's test command and nothing else, in the workspace.
fn is_test(workspace: &Workspace, cwd: &Path, text: &str) -> bool {
    let Some(test) = &workspace.test else { return false };
    let mut left = parse::MAX_CHARACTERS;
    let (Ok(mut test), Ok(mut given)) = (parse::parse(test, 0, &mut left), parse::parse(text, 0, &mut left)) else {
        return false;
    };
    if test.0.is_empty() {
        return false;
    }
    let mut folder = path::folder(workspace, cwd, ".").ok();
    if given.0.len() > test.0.len()
        && let Some(target) = leading_cd(&given)
    {
        folder = folder.and_then(|folder| path::folder(workspace, &folder, &target).ok());
        given.0.remove(0);
        if let Some(first) = given.0.first_mut() {
            first.joint = syntax::Joint::Then;
        }
    }
    without_duplicates(&mut test);
    without_duplicates(&mut given);
    folder.as_deref() == Some(workspace.root()) && test == given
}

/// The folder of `cd FOLDER &&` in front of a list.
fn leading_cd(list: &List) -> Option<String> {
    let [first, second, ..] = list.0.as_slice() else { return None };
    let [command] = first.commands.as_slice() else { return None };
    let Kind::Simple { assignments, words } = &command.kind else { return None };
    let plain = assignments.is_empty() && command.redirections.is_empty() && !first.background && !first.negated;
    if !plain || second.joint != syntax::Joint::And {
        return None;
    }
    let [program, folder] = words.as_slice() else { return None };
    (literal(program)? == "cd").then(|| literal(folder))?
}

/// The text of a word without expansions.
fn literal(word: &syntax::Word) -> Option<String> {
    word.iter()
        .map(|piece| match piece {
            syntax::Piece::Char(c, quoted) => {
                (*quoted || c.is_ascii_alphanumeric() || "_-./".contains(*c)).then(|| c.to_string())
            }
            syntax::Piece::Variable(name, true) if name.is_empty() => Some(String::new()),
            _ => None,
        })
        .collect()
}

/// Removes `2>&1` and its like, which do not change the result. `>&FILE` is another thing.
fn without_duplicates(list: &mut List) {
    for pipeline in &mut list.0 {
        if let [command] = pipeline.commands.as_mut_slice() {
            command.redirections.retain(|redirection| {
                let target = literal(&redirection.target.borrow());
                let stream = target.is_some_and(|text| matches!(text.as_str(), "1" | "2"));
                !(redirection.operator == Operator::Duplicate && stream)
            });
        }
    }
}
