//! Runs cargo for the canister, independently of a cargo that runs this program.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::pack::gzip_cached;
use crate::{BuildError, Built, bind, with_candid};

/// The compile target: SQLite needs WASI.
pub const TARGET: &str = "wasm32-wasip1";

/// The crate of a canister.
#[derive(Debug, Clone)]
pub struct Crate {
    workspace: PathBuf,
    package: String,
    shown: bool,
}

impl Crate {
    /// Finds the crate `package` in the current workspace.
    ///
    /// # Errors
    /// The current folder is not in a workspace.
    pub fn new(package: &str) -> Result<Crate, BuildError> {
        let here = std::env::current_dir().map_err(|source| BuildError::file(Path::new("."), source))?;
        Ok(Crate { workspace: workspace(&here)?, package: package.to_string(), shown: false })
    }

    /// Shows the output of cargo instead of capturing it for the error.
    #[must_use]
    pub fn shown(mut self) -> Crate {
        self.shown = true;
        self
    }

    /// The target folder for canisters. It is not the target folder of the outer cargo, which is
    /// locked while tests run.
    pub fn target(&self) -> PathBuf {
        self.workspace.join("target").join("canister")
    }

    /// The root of the workspace.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Compiles and binds the module, reads its interface, and packs it.
    ///
    /// # Errors
    /// The crate does not compile or is not a canister.
    pub fn build(&self) -> Result<Built, BuildError> {
        let compiled = self.compile()?;
        let bound = bind(&compiled)?;
        let did = charter_icp_host::candid_of(&bound).map_err(|error| BuildError::Candid(error.to_string()))?;
        let wasm = with_candid(&bound, &did)?;
        let wasm_gz = gzip_cached(&wasm, &self.target().join("gzip"), &self.package)?;
        Ok(Built { wasm, wasm_gz, did })
    }

    /// Runs cargo and reads the module.
    fn compile(&self) -> Result<Vec<u8>, BuildError> {
        self.ensure_target()?;
        let mut cargo = self.command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        // Build only the module: cargo has no LTO for crates that are also built as `rlib`.
        cargo.args([
            "rustc",
            "--profile",
            "canister",
            "--target",
            TARGET,
            "--package",
            &self.package,
            "--lib",
            "--crate-type",
            "cdylib",
        ]);
        cargo.arg("--target-dir").arg(self.target());
        // Paths in panic messages are part of the module, and must not depend on where it is built.
        let mut remap = vec![format!("--remap-path-prefix={}=charter", self.workspace.display())];
        if let Some(home) = cargo_home() {
            remap.push(format!("--remap-path-prefix={}=cargo", home.display()));
        }
        cargo.env("CARGO_ENCODED_RUSTFLAGS", remap.join("\u{1f}"));
        cargo.stdin(Stdio::null()).stdout(Stdio::null());
        if self.shown {
            cargo.stderr(Stdio::inherit());
        }
        let output = cargo.output().map_err(|source| BuildError::Start { program: program_name(&cargo), source })?;
        if !output.status.success() {
            let output = String::from_utf8_lossy(&output.stderr).trim_end().to_string();
            return Err(BuildError::Cargo { package: self.package.clone(), output });
        }
        let path = self.target().join(TARGET).join("canister").join(format!("{}.wasm", self.package.replace('-', "_")));
        std::fs::read(&path).map_err(|source| BuildError::file(&path, source))
    }

    /// Installs the target with rustup if it is missing.
    fn ensure_target(&self) -> Result<(), BuildError> {
        if self.has_target() {
            return Ok(());
        }
        let mut rustup = self.command("rustup");
        rustup.args(["target", "add", TARGET]).stdin(Stdio::null());
        match rustup.output() {
            Ok(output) if output.status.success() && self.has_target() => Ok(()),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                Err(BuildError::NoTarget(said.lines().last().unwrap_or("rustup could not add it").trim().to_string()))
            }
            Err(error) => Err(BuildError::NoTarget(format!("there is no rustup either: {error}"))),
        }
    }

    /// Whether the target is installed. Also returns true if that cannot be determined; cargo then
    /// reports the error.
    fn has_target(&self) -> bool {
        let mut rustc = self.command("rustc");
        match rustc.args(["--print", "target-libdir", "--target", TARGET]).output() {
            Ok(output) if output.status.success() => Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir(),
            _ => true,
        }
    }

    /// Builds a command that runs in the workspace, without the environment variables that an outer
    /// cargo or its user set for another build.
    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.workspace);
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(disturbs) {
                command.env_remove(&name);
            }
        }
        command
    }
}

/// Whether a variable configures another build (flags, directories, profiles). Variables for
/// registries, sources and the network are kept.
fn disturbs(name: &str) -> bool {
    const STAY: [&str; 7] = [
        "CARGO_HOME",
        "CARGO_HTTP_",
        "CARGO_NET_",
        "CARGO_REGISTR",
        "CARGO_SOURCE_",
        "CARGO_TERM_",
        "CARGO_BUILD_JOBS",
    ];
    const GO: [&str; 10] = [
        "RUSTFLAGS",
        "RUSTDOCFLAGS",
        "RUSTC",
        "RUSTC_BOOTSTRAP",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTC_LINKER",
        "RUSTDOC",
        "OUT_DIR",
        "__CARGO_FIX_PLZ",
        "CLIPPY_ARGS",
    ];
    (name.starts_with("CARGO") && !STAY.iter().any(|stay| name.starts_with(stay))) || GO.contains(&name)
}

/// Returns the folder in which cargo unpacks crates.
fn cargo_home() -> Option<PathBuf> {
    let named = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    named.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")))
}

fn program_name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

/// Finds the root of the workspace that contains `folder`.
///
/// # Errors
/// The folder is not in a workspace.
pub fn workspace(folder: &Path) -> Result<PathBuf, BuildError> {
    for candidate in folder.ancestors() {
        let manifest = candidate.join("Cargo.toml");
        let is_root = std::fs::read_to_string(&manifest)
            .is_ok_and(|text| text.lines().any(|line| line.trim_end() == "[workspace]"));
        if is_root {
            return Ok(candidate.to_path_buf());
        }
    }
    Err(BuildError::NoWorkspace(folder.to_path_buf()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_outer_cargo_sets_goes_and_what_reaches_the_registry_stays() {
        for name in [
            "CARGO_TARGET_DIR",
            "CARGO_PROFILE_DEV_DEBUG",
            "CARGO_MANIFEST_DIR",
            "RUSTFLAGS",
            "RUSTC_BOOTSTRAP",
            "CARGO",
        ] {
            assert!(disturbs(name), "{name}");
        }
        for name in ["CARGO_HOME", "CARGO_NET_OFFLINE", "CARGO_REGISTRIES_X_TOKEN", "PATH", "RUSTUP_TOOLCHAIN", "HOME"]
        {
            assert!(!disturbs(name), "{name}");
        }
    }

    #[test]
    fn outside_of_a_workspace_the_message_says_where_to_go() {
        let folder = tempfile::tempdir().map(|folder| folder.path().join("nowhere"));
        let error = folder.map(|folder| workspace(&folder).map_err(|error| error.to_string()));
        assert!(matches!(error, Ok(Err(text)) if text.contains("run it inside the workspace")));
    }
}
