//! Options about models for runs that another process hosts, which asks its own models.

use super::Args;
use crate::io::Failure;

impl Args {
    /// Whether an option about models is given.
    pub(crate) fn is_given(&self) -> bool {
        self.model.is_some() || self.model_url.is_some() || self.models.is_some() || self.cassette().is_some()
    }

    /// The option that names a cassette.
    fn cassette(&self) -> Option<&'static str> {
        let all = [
            ("--record-models", &self.record_models),
            ("--record-missing", &self.record_missing),
            ("--replay-models", &self.replay_models),
        ];
        all.into_iter().find_map(|(option, file)| file.is_some().then_some(option))
    }

    /// What to say if this process calls the models instead.
    ///
    /// # Errors
    /// A cassette is named: the recording would be missing, or what it answers would not be heard.
    pub(crate) fn elsewhere(&self, process: u32) -> Result<Option<String>, Failure> {
        let calls = format!("process {process} has the journal open and calls the models of its runs");
        match self.cassette() {
            Some(option) => Err(Failure::with_help(
                format!("`{option}` has no effect: {calls}"),
                "end that process first, or leave the option out",
            )),
            None => Ok(self.is_given().then(|| format!("{calls}: the options about models have no effect"))),
        }
    }
}
