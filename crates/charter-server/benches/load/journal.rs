//! The journal alone: records that were made before are written, each after the one before it is
//! durable.

use std::path::Path;
use std::time::{Duration, Instant};

use charter_journal::{Append, Chain, SqliteStore, Store, StoredCharter};
use charter_kernel::{Envelope, Event, Machine, Principal, Snapshot};
use serde_json::json;

use crate::host::EVENTS;

/// Upper limit of the records of a writer.
const PREPARED: usize = 1_500;

/// Records per second of `writers`, each with a run of its own.
pub(crate) fn rate(file: &Path, writers: usize, time: Duration) -> f64 {
    let definition = charter_format::read(EVENTS, "bench.yaml", &Default::default()).unwrap().definition;
    let machine = Machine::compile(definition.clone()).unwrap();
    let store = SqliteStore::open(file).unwrap();
    store.put_charter(&StoredCharter::new(&definition, "bench.yaml", EVENTS)).unwrap();
    let prepared: Vec<Vec<Append>> = (0..writers).map(|writer| records(&machine, &format!("w{writer}"))).collect();
    let begin = Instant::now();
    let written = std::thread::scope(|scope| {
        let threads: Vec<_> = prepared
            .into_iter()
            .map(|records| {
                let store = &store;
                scope.spawn(move || {
                    let mut written = 0u32;
                    for record in records {
                        if begin.elapsed() >= time {
                            break;
                        }
                        store.append(vec![record]).unwrap();
                        written += 1;
                    }
                    written
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u32>()
    });
    f64::from(written) / begin.elapsed().as_secs_f64()
}

fn records(machine: &Machine, run: &str) -> Vec<Append> {
    let mut chain = Chain::new(run);
    let mut snapshot: Option<Snapshot> = None;
    (0..PREPARED)
        .map(|_| {
            let seq = chain.next_seq();
            let at = 1_795_255_200_000 + i64::try_from(seq).unwrap() * 1_000;
            let data = json!({"message": "Should we raise prices?"});
            let envelope = match seq {
                0 => Envelope::host(0, Event::Start { input: json!(null) }, at),
                _ => Envelope::event(seq, "NEXT", data, Principal::new("ann", &["clerk"]), at),
            };
            let outcome = match &snapshot {
                None => machine.start(chain.run(), &envelope),
                Some(before) => machine.step(before, &envelope),
            };
            let append = chain.append(machine, None, &envelope, snapshot.as_ref(), &outcome);
            chain.advance(&append);
            snapshot = Some(outcome.unwrap().snapshot);
            append
        })
        .collect()
}
