//! Tells who waits beside an open task how somebody else answers it meanwhile.

use std::collections::BTreeSet;

use charter_runtime::View;

use super::Who;
use super::follow::now;
use super::progress::Progress;
use super::suggest::Suggest;
use crate::io::{Failure, Io};
use crate::journal::Db;
use crate::journal::offers;
use crate::journal::text::clean;

/// The tasks that were told.
#[derive(Default)]
pub(super) struct Answerable(BTreeSet<String>);

impl Answerable {
    /// Tells once of each open task which command answers it: it may have a deadline before the
    /// actors and timers end that the run is followed for.
    pub(super) fn tell(
        &mut self,
        view: &View,
        who: &Who,
        db: &Db,
        progress: &mut Progress,
        io: &mut Io<'_>,
    ) -> Result<(), Failure> {
        let told = |task: &&charter_runtime::Task| !self.0.contains(&task.effect);
        let new: Vec<_> = view.tasks.iter().filter(told).cloned().collect();
        if new.is_empty() {
            return Ok(());
        }
        let (machine, now) = (view.charter.machine(), now());
        let offers = offers::all(machine, &view.snapshot, now);
        let suggest = Suggest::new((machine, &view.snapshot), who, db, &offers, now);
        for task in new {
            let [answer, _] = suggest.answer(&task);
            progress.note(&format!("to answer {}: {answer}", clean(&task.src)), io)?;
            self.0.insert(task.effect);
        }
        Ok(())
    }
}
