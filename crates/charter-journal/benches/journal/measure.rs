//! Helpers for measurements: wall-clock and CPU time, rates, and a temporary folder.

use std::path::PathBuf;
use std::time::Instant;

/// A temporary folder that is removed when it is dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        let path = std::env::temp_dir().join(format!("charter-journal-bench-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A start time: wall-clock time and CPU time of this thread.
#[derive(Clone, Copy)]
pub(crate) struct Start {
    pub(crate) wall: Instant,
    cpu: f64,
}

impl Start {
    pub(crate) fn now() -> Start {
        Start { wall: Instant::now(), cpu: cpu() }
    }
}

/// CPU seconds of this thread, or 0 if the system does not report them.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().and_then(|n| n.parse::<f64>().ok());
    first.unwrap_or_default() / 1e9
}

/// Prints and returns a rate by wall-clock time, for work that waits for the disk.
pub(crate) fn rate(name: &str, n: usize, start: Start) -> f64 {
    let took = start.wall.elapsed().as_secs_f64();
    let rate = n as f64 / took;
    println!("  {name:<58} {rate:>11.0}/s  {:>9.2} µs each", took * 1e6 / n as f64);
    rate
}

/// Prints a rate per core, by CPU time of this thread (or wall-clock time if that is unknown),
/// which does not depend on the load of the machine.
pub(crate) fn per_core(name: &str, n: usize, start: Start, note: &str) {
    let took = match cpu() - start.cpu {
        zero if zero <= 0.0 => start.wall.elapsed().as_secs_f64(),
        cpu => cpu,
    };
    println!("  {name:<58} {:>11.0}/s  {:>9.2} µs each, per core  {note}", n as f64 / took, took * 1e6 / n as f64);
}

/// Measures SQLite alone and the journal alternately, because disks vary, and returns the median
/// rate of each.
pub(crate) fn in_turns(
    n: usize,
    names: [&str; 2],
    alone: impl Fn(usize),
    ours: impl Fn(usize) -> Box<dyn FnOnce()>,
) -> (f64, f64) {
    let mut rates = [Vec::new(), Vec::new()];
    for round in 0..5 {
        let start = Instant::now();
        alone(round);
        rates[0].push(n as f64 / start.elapsed().as_secs_f64());
        let ours = ours(round);
        let start = Instant::now();
        ours();
        rates[1].push(n as f64 / start.elapsed().as_secs_f64());
    }
    let [alone, ours] = [0, 1].map(|i| {
        rates[i].sort_by(f64::total_cmp);
        let rate = rates[i][2];
        println!("  {:<58} {rate:>11.0}/s  {:>9.2} µs each", names[i], 1e6 / rate);
        rate
    });
    (alone, ours)
}
