//! `charter new`: creates a small working charter, with a scenario and a README.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::io::{Exit, Failure, Io, Paint};
use crate::load::plain;

/// The files of a new charter. `NAME` is replaced by the name of the charter.
const FILES: [(&str, &str); 3] = [
    ("charter.yaml", include_str!("../templates/charter.yaml")),
    ("scenarios/review.yaml", include_str!("../templates/scenarios/review.yaml")),
    ("README.md", include_str!("../templates/README.md")),
];

/// Creates a charter.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the charter and of the new folder
    name: PathBuf,
}

/// Runs the command. With `--json`, prints the folder and the files.
///
/// # Errors
/// The name is invalid, or the folder exists or cannot be written.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let folder = &args.name;
    let name = folder.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    if !is_name(name) {
        return Err(Failure::with_help(
            format!("invalid charter name `{}`", folder.display()),
            "use lowercase letters, digits and `-`, starting with a letter, such as `my-charter`",
        ));
    }
    if folder.exists() {
        return Err(Failure::with_help(
            format!("`{}` already exists", folder.display()),
            "choose another name, or remove the folder",
        ));
    }
    for (path, text) in FILES {
        write(&folder.join(path), &text.replace("NAME", name))?;
    }
    if machine_output {
        let files = FILES.map(|(path, _)| folder.join(path).display().to_string());
        writeln!(io.out, "{}", json!({"charter": name, "folder": folder.display().to_string(), "files": files}))?;
        return Ok(Exit::Yes);
    }
    let paint = Paint(io.color_out);
    writeln!(io.out, "{} {}", paint.good("created"), folder.display())?;
    for (path, _) in FILES {
        writeln!(io.out, "  {}", folder.join(path).display())?;
    }
    writeln!(io.out, "next steps:")?;
    for command in ["check", "test", "run"] {
        writeln!(io.out, "  charter {command} {}", folder.display())?;
    }
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
