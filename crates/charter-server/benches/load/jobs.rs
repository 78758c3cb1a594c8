//! Jobs of six durable steps: by actors of the host (`embedded`), and by a client that sends an
//! event for each step (`http`). One job after the other, and eight at a time.

use std::time::Instant;

use charter_kernel::Principal;
use charter_runtime::{Runtime, Start};
use serde_json::json;

use crate::client::{Connection, Target};
use crate::host::{self, Hosted};

const STEPS: usize = 6;

pub(crate) async fn measure(quick: bool) {
    let jobs = if quick { 40 } else { 400 };
    let folder = tempfile::tempdir().unwrap();
    let embedded = host::host(&folder.path().join("embedded.db")).await;
    let charter = embedded.add(host::charter(&host::six_steps())).await.unwrap().digest();
    let served = Hosted::start(&folder.path().join("served.db"));
    for at_once in [1, 8] {
        let begin = Instant::now();
        let tasks: Vec<_> = (0..at_once)
            .map(|worker| {
                tokio::spawn(in_host(embedded.clone(), charter, format!("{at_once}-{worker}"), jobs / at_once))
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        report("embedded", at_once, jobs, begin);
        let begin = Instant::now();
        let tasks: Vec<_> = (0..at_once)
            .map(|worker| tokio::spawn(over_http(served.target(), format!("{at_once}-{worker}"), jobs / at_once)))
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        report("http", at_once, jobs, begin);
    }
}

fn report(name: &str, at_once: usize, jobs: usize, begin: Instant) {
    let rate = (jobs * STEPS) as f64 / begin.elapsed().as_secs_f64();
    println!("{}", json!({"name": name, "at_once": at_once, "steps_per_second": rate}));
}

async fn in_host(host: Runtime, charter: charter_kernel::Digest, name: String, jobs: usize) {
    for job in 0..jobs {
        let run = format!("{name}-{job}");
        let start = Start { charter, run: Some(run.clone()), input: json!(null), by: Principal::new("ann", &[]) };
        host.start(start).await.unwrap();
        let view = host.ended(&run).await.unwrap();
        assert_eq!(view.snapshot.status().word(), "done");
    }
}

async fn over_http(target: Target, name: String, jobs: usize) {
    let mut connection = Connection::open(&target).await;
    for job in 0..jobs {
        let run = format!("{name}-{job}");
        let body = json!({"charter": "bench", "run": run}).to_string();
        assert_eq!(connection.post("/v1/runs", &body).await, 201);
        for _ in 0..STEPS {
            connection.send_event(&run).await;
        }
    }
}
