//! Runs a command line without running it: in which folder each command would be, which variables
//! it would see, what it would do.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use super::expand::Arg;
use super::parse::{self, Unreadable};
use super::sequence::{Place, runs_in_background};
use super::syntax::{Command, Joint, Kind, List, Pipeline, Redirection, Word};
use crate::data::{Description, SimpleCommand, Usage};
use crate::path::{self, Depth};
use crate::workspace::Workspace;

/// Commands that are followed for one call, counting each round of a loop.
const MAX_RUN: usize = 400;
/// Upper limit of nesting of functions and command lines in command lines.
const MAX_CALLS: usize = 12;
/// Variables and functions that are followed.
pub(super) const MAX_VARIABLES: usize = 64;
/// Folders that one command may be in.
const MAX_FOLDERS: usize = 8;

/// The value of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Known(String),
    Unknown,
}

/// What changes while a command line runs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct State {
    /// The folders where the shell may be; none if it has ended.
    pub(super) folders: Vec<PathBuf>,
    pub(super) variables: BTreeMap<String, Value>,
    /// Functions; without a body if it is not certain which.
    pub(super) functions: BTreeMap<String, Option<Rc<Command>>>,
}

impl State {
    /// The state if it is not certain which of the two it is.
    pub(super) fn join(mut self, other: Self) -> Self {
        if self.folders.is_empty() {
            return other;
        }
        if other.folders.is_empty() {
            return self;
        }
        for folder in other.folders {
            if !self.folders.contains(&folder) {
                self.folders.push(folder);
            }
        }
        for (name, value) in &mut self.variables {
            if other.variables.get(name) != Some(value) {
                *value = Value::Unknown;
            }
        }
        for name in other.variables.into_keys() {
            self.variables.entry(name).or_insert(Value::Unknown);
        }
        for (name, body) in &mut self.functions {
            if other.functions.get(name) != Some(body) {
                *body = None;
            }
        }
        for name in other.functions.into_keys() {
            self.functions.entry(name).or_insert(None);
        }
        self
    }
}

/// A shell that follows a command line.
pub(super) struct Shell<'a> {
    pub(super) description: &'a mut Description,
    pub(super) workspace: &'a Workspace,
    pub(super) state: State,
    /// An earlier command may have put links in place, so paths may lead elsewhere now.
    pub(super) links_changed: bool,
    /// The current command may do that.
    pub(super) links_after: bool,
    /// Where the current simple command stands.
    pub(super) place: Place,
    /// How many things around it run at the same time as others.
    pub(super) concurrent: usize,
    /// The commands of `git` so far.
    pub(super) git_calls: usize,
    /// Where they look for a repository.
    pub(super) git_folders: Vec<PathBuf>,
    /// How many there were when the index became what the working files are.
    pub(super) all_added: Option<usize>,
    /// An earlier command has changed an index, so what it lists is not certain.
    pub(super) index_changed: bool,
    /// An earlier command has given names to commits.
    pub(super) names_changed: bool,
    /// What the indexes of repositories list; nothing where one cannot be read.
    pub(super) tracked: BTreeMap<PathBuf, Option<Rc<Vec<String>>>>,
    /// The text that a here-document gives to the command that is looked at.
    pub(super) standard_input: Option<String>,
    /// The standard input is a pipe or a file that the command line names.
    pub(super) fed: bool,
    /// What the command that is looked at does.
    pub(super) current: SimpleCommand,
    run: usize,
    calls: usize,
    left: usize,
}

impl<'a> Shell<'a> {
    pub(super) fn new(description: &'a mut Description, workspace: &'a Workspace, cwd: PathBuf) -> Self {
        Self {
            description,
            workspace,
            state: State { folders: vec![cwd], variables: BTreeMap::new(), functions: BTreeMap::new() },
            links_changed: false,
            links_after: false,
            place: Place::default(),
            concurrent: 0,
            git_calls: 0,
            git_folders: Vec::new(),
            all_added: None,
            index_changed: false,
            names_changed: false,
            tracked: BTreeMap::new(),
            standard_input: None,
            fed: false,
            current: SimpleCommand::default(),
            run: 0,
            calls: 0,
            left: parse::MAX_CHARACTERS,
        }
    }

    /// Notes that the current command cannot be read, and why.
    pub(super) fn opaque(&mut self, reason: impl Into<String>) {
        self.current.opaque = true;
        self.description.opaque(reason);
    }

    pub(super) fn does(&mut self, what: &'static str) {
        if !self.current.does.contains(&what) {
            self.current.does.push(what);
        }
    }

    /// Parses and follows a text: the command line, the text of `sh -c`, of `eval`.
    pub(super) fn text(&mut self, text: &str) {
        match self.parse(text) {
            Ok(list) => self.nested(|shell| shell.list(&list)),
            Err(reason) => self.opaque(format!("the command line has {reason}")),
        }
    }

    pub(super) fn parse(&mut self, text: &str) -> Result<List, Unreadable> {
        parse::parse(text, 0, &mut self.left)
    }

    /// Follows something one level deeper.
    pub(super) fn nested(&mut self, follow: impl FnOnce(&mut Self)) {
        if self.calls >= MAX_CALLS {
            self.opaque("too much nesting");
            return;
        }
        self.calls = self.calls.saturating_add(1);
        let outer = std::mem::take(&mut self.current);
        follow(self);
        let inner = std::mem::replace(&mut self.current, outer);
        self.current.opaque |= inner.opaque;
        for what in inner.does {
            self.does(what);
        }
        self.calls = self.calls.saturating_sub(1);
    }

    /// Follows a list whose changes of state end with it.
    pub(super) fn subshell(&mut self, list: &List) {
        let before = self.state.clone();
        self.nested(|shell| shell.list(list));
        self.state = before;
    }

    pub(super) fn list(&mut self, list: &List) {
        let mut success = self.state.clone();
        let mut failure: Option<State> = None;
        for (at, pipeline) in list.0.iter().enumerate() {
            if self.run > MAX_RUN {
                self.opaque("too many commands");
                break;
            }
            let start = match (pipeline.joint, &failure) {
                (Joint::Then, Some(failed)) => success.clone().join(failed.clone()),
                (Joint::Or, Some(failed)) => failed.clone(),
                _ => success.clone(),
            };
            self.state = start;
            let place = self.place_in(list, at);
            let outer = std::mem::replace(&mut self.place, place);
            let failed = match runs_in_background(list, at) {
                true => self.at_the_same_time(|shell| shell.pipeline(pipeline)),
                false => self.pipeline(pipeline),
            };
            self.place = outer;
            let (mut good, mut bad) = (self.state.clone(), failed);
            if good.folders.len().max(bad.folders.len()) > MAX_FOLDERS {
                self.opaque("too many folders that it may run in");
                good.folders.truncate(MAX_FOLDERS);
                bad.folders.truncate(MAX_FOLDERS);
            }
            (success, failure) = match (pipeline.joint, failure) {
                (Joint::And, Some(before)) => (good, Some(before.join(bad))),
                (Joint::Or, _) => (success.join(good), Some(bad)),
                _ => (good, Some(bad)),
            };
        }
        self.state = match failure {
            Some(failure) => success.join(failure),
            None => success,
        };
        if self.state.folders.len() > MAX_FOLDERS {
            self.opaque("too many folders that it may run in");
            self.state.folders.truncate(MAX_FOLDERS);
        }
    }

    /// Follows a pipeline; the state is that after success, the result that after failure.
    fn pipeline(&mut self, pipeline: &Pipeline) -> State {
        let before = self.state.clone();
        let alone = pipeline.commands.len() == 1 && !pipeline.background;
        let fed = self.fed;
        for (at, command) in pipeline.commands.iter().enumerate() {
            self.state = before.clone();
            self.fed = fed || at > 0;
            if pipeline.commands.len() > 1 {
                self.at_the_same_time(|shell| shell.command(command));
            } else {
                self.command(command);
            }
            self.place = Place::default();
        }
        self.fed = fed;
        if pipeline.background {
            self.state = before.clone();
        } else if !alone {
            // In some shells the last command of a pipeline runs in the shell itself.
            self.state = before.clone().join(self.state.clone());
        }
        let mut failed = self.state.clone();
        if !failed.folders.is_empty() {
            for folder in before.folders {
                if !failed.folders.contains(&folder) {
                    failed.folders.push(folder);
                }
            }
        }
        if pipeline.negated {
            self.state = failed.clone();
        }
        failed
    }

    /// Follows a command.
    pub(super) fn command(&mut self, command: &Command) {
        self.run = self.run.saturating_add(1);
        if self.run > MAX_RUN {
            self.opaque("too many commands");
            return;
        }
        if self.state.folders.is_empty() {
            self.opaque("commands after the end of the shell");
            return;
        }
        let fed = self.fed;
        self.fed |= command.redirections.iter().any(Redirection::feeds);
        self.command_of(command);
        self.fed = fed;
    }

    fn command_of(&mut self, command: &Command) {
        if let Kind::Simple { assignments, words } = &command.kind {
            self.simple(assignments, words, &command.redirections);
            return;
        }
        for redirection in &command.redirections {
            self.redirect(redirection);
        }
        match &command.kind {
            Kind::Simple { .. } => {}
            Kind::Subshell(list) => self.subshell(list),
            Kind::Group(list) => self.nested(|shell| shell.list(list)),
            Kind::Branches(words, lists) => {
                for word in words {
                    self.scan(word);
                }
                self.nested(|shell| shell.branches(lists));
            }
            Kind::Loop(lists) => self.nested(|shell| {
                let before = shell.state.clone();
                shell.branches(lists);
                shell.settle(&before, |shell| shell.branches(lists));
            }),
            Kind::For(name, words, body) => self.nested(|shell| shell.each(name, words.as_ref(), body)),
            Kind::Function(name, body) => self.define(name, body),
            Kind::Test(words) => {
                let args: Vec<Arg> = words.iter().map(|word| Arg { many: false, ..self.expand_value(word) }).collect();
                self.test(&args);
            }
        }
    }

    /// Follows lists of which each may run or not.
    fn branches(&mut self, lists: &[List]) {
        for list in lists {
            let before = self.state.clone();
            self.list(list);
            self.state = before.join(self.state.clone());
        }
    }

    /// Follows something again, until it changes the state no more.
    fn settle(&mut self, before: &State, mut again: impl FnMut(&mut Self)) {
        let mut last = before.clone();
        for _ in 0..3 {
            if self.state == last {
                return;
            }
            last = self.state.clone();
            again(self);
        }
        if self.state != last {
            self.opaque("a loop that changes its folder or its variables");
        }
    }

    fn each(&mut self, name: &str, words: Option<&Vec<Word>>, body: &List) {
        let items: Vec<Arg> = match words {
            Some(words) => words.iter().flat_map(|word| self.expand(word)).collect(),
            None => vec![Arg::unknown()],
        };
        let items: Vec<Arg> = items.into_iter().flat_map(|item| self.matches(item)).collect();
        let before = self.state.clone();
        for item in items {
            if self.run > MAX_RUN {
                break;
            }
            let value = item.exact().map_or(Value::Unknown, |text| Value::Known(text.to_owned()));
            self.set(name, value);
            let start = self.state.clone();
            self.list(body);
            let item_done = self.state.clone();
            self.state = start.join(item_done);
        }
        self.set(name, Value::Unknown);
        let mut expected = before.clone();
        expected.variables.insert(name.to_owned(), Value::Unknown);
        if self.state.folders != expected.folders {
            self.opaque("a loop that changes its folder");
        }
        self.state = before.join(self.state.clone());
    }

    /// What a pattern stands for now, if that is certain.
    pub(super) fn matches(&mut self, item: Arg) -> Vec<Arg> {
        let [folder] = self.state.folders.as_slice() else { return vec![item] };
        if !item.known || !item.glob || self.links_changed {
            return vec![item];
        }
        match path::matches(self.description, self.workspace, folder, &item.text) {
            Ok(found) if !found.is_empty() => found.iter().map(|path| Arg::literal(path)).collect(),
            _ => vec![item],
        }
    }

    /// Adds a use of a path.
    pub(super) fn touch(&mut self, arg: &Arg, usage: Usage, depth: Depth) {
        self.does(usage.name());
        if !arg.known {
            self.opaque("a path that is not known");
            return;
        }
        if self.links_changed && usage != Usage::Search {
            self.opaque("an earlier command may have changed where paths lead");
        }
        let depth = if arg.below { Depth::All } else { depth };
        for folder in self.state.folders.clone() {
            let add = if arg.glob { path::add_glob } else { path::add };
            let before = self.description.reasons.len();
            add(self.description, self.workspace, &folder, &arg.text, usage, depth);
            self.current.opaque |= self.description.reasons.len() > before;
        }
    }
}
