//! `charter new`: a small charter that works, with a scenario and a page about it, to start from.

use std::path::{Path, PathBuf};

use crate::io::{Exit, Failure, Io, Paint};
use crate::load::plain;

/// The files of a new charter. `NAME` stands for its name.
const FILES: [(&str, &str); 3] = [
    ("charter.yaml", include_str!("../templates/charter.yaml")),
    ("scenarios/review.yaml", include_str!("../templates/scenarios/review.yaml")),
    ("README.md", include_str!("../templates/README.md")),
];

/// Begins a charter.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Its name, which is also that of the new folder
    name: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// The name cannot be one, there is such a folder already, or it cannot be written.
pub fn run(args: &Args, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let folder = &args.name;
    let name = folder.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    if !is_name(name) {
        return Err(Failure::with_help(
            format!("`{}` is no name for a charter", folder.display()),
            "lower-case letters, digits and `-`, beginning with a letter, such as `my-charter`",
        ));
    }
    if folder.exists() {
        return Err(Failure::with_help(
            format!("there is a `{}` already", folder.display()),
            "choose another name, or remove it",
        ));
    }
    for (path, text) in FILES {
        write(&folder.join(path), &text.replace("NAME", name))?;
    }
    let paint = Paint(io.colour_out);
    writeln!(io.out, "{} {}", paint.good("made"), folder.display())?;
    for (path, _) in FILES {
        writeln!(io.out, "  {}", folder.join(path).display())?;
    }
    writeln!(io.out, "try")?;
    writeln!(io.out, "  charter check {}", folder.join("charter.yaml").display())?;
    writeln!(io.out, "  charter test {}", folder.display())?;
    Ok(Exit::Yes)
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let cannot = |e: std::io::Error| Failure::new(format!("cannot write `{}`: {}", path.display(), plain(&e)));
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(cannot)?;
    }
    std::fs::write(path, text).map_err(cannot)
}
