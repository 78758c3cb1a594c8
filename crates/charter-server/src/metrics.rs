//! Counters, in the text format of OpenMetrics.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use crate::hooks::Hooks;

/// Upper bounds of the buckets of request times, in seconds.
const BOUNDS: [f64; 10] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0];

/// What the server counts.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Requests by the first digit of their status.
    requests: [AtomicU64; 6],
    times: [AtomicU64; BOUNDS.len()],
    time_us: AtomicU64,
    pub(crate) records: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) streams: AtomicI64,
    pub(crate) failures: AtomicU64,
    pub(crate) connections: AtomicI64,
}

impl Metrics {
    pub(crate) fn request(&self, status: u16, time: Duration) {
        let add = |counter: Option<&AtomicU64>, n: u64| counter.map(|c| c.fetch_add(n, Ordering::Relaxed));
        add(self.requests.get(usize::from(status / 100)), 1);
        for (bound, counter) in BOUNDS.iter().zip(&self.times) {
            if time.as_secs_f64() <= *bound {
                add(Some(counter), 1);
            }
        }
        add(Some(&self.time_us), u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    /// The text; `position` is that of the last record of the journal.
    pub(crate) fn text(&self, position: u64, hooks: &Hooks) -> String {
        let mut out = String::new();
        let get = |c: &AtomicU64| c.load(Ordering::Relaxed);
        let _ = writeln!(out, "# TYPE charter_requests counter\n# HELP charter_requests Requests, by class of status.");
        let mut all = 0u64;
        for (class, counter) in self.requests.iter().enumerate().skip(1) {
            all = all.saturating_add(get(counter));
            let _ = writeln!(out, "charter_requests_total{{status=\"{class}xx\"}} {}", get(counter));
        }
        let _ = writeln!(
            out,
            "# TYPE charter_request_seconds histogram\n# UNIT charter_request_seconds seconds\n# HELP charter_request_seconds Time to the first byte of an answer."
        );
        for (bound, counter) in BOUNDS.iter().zip(&self.times) {
            let _ = writeln!(out, "charter_request_seconds_bucket{{le=\"{bound:?}\"}} {}", get(counter));
        }
        let _ = writeln!(out, "charter_request_seconds_bucket{{le=\"+Inf\"}} {all}");
        let _ = writeln!(out, "charter_request_seconds_count {all}");
        let micros = get(&self.time_us);
        let _ = writeln!(out, "charter_request_seconds_sum {}.{:06}", micros / 1_000_000, micros % 1_000_000);
        let counters = [
            ("charter_records", "Records written since the server was started.", get(&self.records)),
            ("charter_refusals", "Refused events since the server was started.", get(&self.refused)),
            ("charter_authentication_failures", "Requests whose key or session was not accepted.", get(&self.failures)),
            ("charter_hook_deliveries", "Messages of webhooks that were delivered.", get(&hooks.delivered)),
            ("charter_hook_failures", "Attempts to deliver a message of a webhook that failed.", get(&hooks.failed)),
            ("charter_hook_dead_letters", "Messages of webhooks that were given up.", get(&hooks.dead)),
        ];
        for (name, help, value) in counters {
            let _ = writeln!(out, "# TYPE {name} counter\n# HELP {name} {help}\n{name}_total {value}");
        }
        let gauges = [
            ("charter_streams", "Open live streams.", self.streams.load(Ordering::Relaxed)),
            ("charter_connections", "Open connections.", self.connections.load(Ordering::Relaxed)),
            (
                "charter_journal_position",
                "Position of the last record of the journal.",
                i64::try_from(position).unwrap_or(i64::MAX),
            ),
        ];
        for (name, help, value) in gauges {
            let _ = writeln!(out, "# TYPE {name} gauge\n# HELP {name} {help}\n{name} {value}");
        }
        let name = "charter_hook_behind_records";
        let _ = writeln!(out, "# TYPE {name} gauge\n# HELP {name} Records that a webhook has not dealt with yet.");
        for (hook, cursor) in hooks.cursors() {
            let _ = writeln!(out, "{name}{{hook=\"{hook}\"}} {}", position.saturating_sub(cursor));
        }
        out.push_str("# EOF\n");
        out
    }
}
