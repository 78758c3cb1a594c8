//! Reads a charter and prints its diagnostics.
fn main() {
    for file in std::env::args().skip(1) {
        let started = std::time::Instant::now();
        match charter_format::read_file(file.as_ref(), &charter_format::ReadOptions::default()) {
            Ok(document) => println!(
                "ok: {} {}",
                document.definition.id,
                document.warnings.iter().map(|w| w.render(&document.source, &document.name, false)).collect::<String>()
            ),
            Err(errors) => println!("{errors}"),
        }
        eprintln!("{:?}", started.elapsed());
    }
}
