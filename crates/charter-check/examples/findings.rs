//! Checks a charter and prints the findings: `cargo run -p charter-check --example findings FILE`.

use charter_check::{Options, check};
use charter_format::{ReadOptions, read_file};
use charter_kernel::Machine;

fn main() {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("usage: findings FILE");
        std::process::exit(2);
    };
    let document = match read_file(file.as_ref(), &ReadOptions::default()) {
        Ok(document) => document,
        Err(problems) => {
            eprintln!("{problems}");
            std::process::exit(1);
        }
    };
    let machine = match Machine::compile(document.definition.clone()) {
        Ok(machine) => machine,
        Err(problems) => {
            for problem in &problems {
                eprintln!("{}", document.diagnose(problem).render(&document.source, &document.name, false));
            }
            std::process::exit(1);
        }
    };
    let report = check(&document, &machine, &Options::default());
    for f in &report.findings {
        println!("{}:{}:{}: {} [{}] {}", document.name, f.line, f.column, f.severity.word(), f.code, f.message);
        if let Some(help) = &f.help {
            println!("    help: {help}");
        }
        for (event, i) in f.events().iter().zip(1..) {
            println!("    {i}. {event}");
        }
    }
    let e = &report.explored;
    println!(
        "explored {} states and {} events: {}",
        e.states,
        e.edges,
        if e.complete { "complete".to_string() } else { format!("cut: {}", e.cut.join("; ")) }
    );
}
