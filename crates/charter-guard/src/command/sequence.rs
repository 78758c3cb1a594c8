//! Where a command stands: whether it runs exactly if the one in front of it has succeeded, and
//! whether others run at the same time. Only `git add --all && git commit` as it stands commits
//! exactly the working files; the words alone do not say so.

use super::shell::Shell;
use super::syntax::{Command, Joint, Kind, List, Pipeline};

/// Where the current simple command stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// A command of `git`, and what follows runs only if it has run and succeeded.
    pub(super) leads: bool,
    /// A command of `git` that runs only if the one in front of it, which leads, has succeeded.
    pub(super) follows: bool,
}

impl Shell<'_> {
    /// Where the first command of a pipeline stands in its list.
    pub(super) fn place_in(&self, list: &List, at: usize) -> Place {
        if self.concurrent > 0 || runs_in_background(list, at) {
            return Place::default();
        }
        let pipeline = |at: usize| list.0.get(at);
        let joined = |at: usize| pipeline(at).is_some_and(|pipeline| pipeline.joint == Joint::And);
        // After `||` it may be left out, and what follows runs all the same.
        let leads = |at: usize| {
            pipeline(at)
                .is_some_and(|pipeline| is_git(pipeline) && pipeline.commands.len() == 1 && pipeline.joint != Joint::Or)
                && joined(at.saturating_add(1))
        };
        let before = at.checked_sub(1);
        Place { leads: leads(at), follows: before.is_some_and(leads) && pipeline(at).is_some_and(is_git) }
    }

    /// Follows something that runs while others do.
    pub(super) fn at_the_same_time<T>(&mut self, follow: impl FnOnce(&mut Self) -> T) -> T {
        self.concurrent = self.concurrent.saturating_add(1);
        let result = follow(self);
        self.concurrent = self.concurrent.saturating_sub(1);
        result
    }

    /// Follows a process whose output or input is a file to another one.
    pub(super) fn process(&mut self, list: &List) {
        self.at_the_same_time(|shell| shell.subshell(list));
    }
}

/// Whether a pipeline is part of `a && b &`.
pub(super) fn runs_in_background(list: &List, at: usize) -> bool {
    let rest = list.0.get(at.saturating_add(1)..).unwrap_or_default();
    let joined = rest.iter().take_while(|pipeline| pipeline.joint != Joint::Then).last();
    joined.or_else(|| list.0.get(at)).is_some_and(|last| last.background)
}

/// Whether a pipeline begins with a command of `git` that is written as one.
fn is_git(pipeline: &Pipeline) -> bool {
    let plain = |command: &Command| match &command.kind {
        Kind::Simple { assignments, words } => {
            assignments.is_empty() && words.first().and_then(super::literal).as_deref() == Some("git")
        }
        _ => false,
    };
    !pipeline.negated && pipeline.commands.first().is_some_and(plain)
}
