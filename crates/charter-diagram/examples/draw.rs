//! Draws a charter: `draw FILE svg|dot|mermaid [ACTIVE_STATE ...]`.
use charter_diagram::{Marks, Overlay, dot, mermaid, svg};
use charter_format::{ReadOptions, read_file};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (file, format) = (arguments.next().unwrap_or_default(), arguments.next().unwrap_or_default());
    let (taken, active): (Vec<String>, Vec<String>) = arguments.partition(|argument| argument.contains('/'));
    let marks = Marks { active: active.into_iter().collect(), taken: taken.into_iter().collect() };
    let overlay = Overlay { root: marks, ..Overlay::default() };
    match read_file(file.as_ref(), &ReadOptions::default()) {
        Err(errors) => eprintln!("{errors}"),
        Ok(document) => match format.as_str() {
            "svg" => print!("{}", svg(&document.definition, &overlay)),
            "dot" => print!("{}", dot(&document.definition, &overlay)),
            _ => print!("{}", mermaid(&document.definition, &overlay)),
        },
    }
}
