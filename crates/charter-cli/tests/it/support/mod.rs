//! Runs a command line in this process, and captures its output.

#[cfg(unix)]
pub(crate) mod processes;

use std::sync::atomic::{AtomicUsize, Ordering};

use charter_cli::{Io, run};

/// The result of a command.
pub(crate) struct Ran {
    pub(crate) code: u8,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs `charter ARGS` with `input` on standard input.
pub(crate) fn charter_with(args: &[&str], input: &str) -> Ran {
    on(args, input, false, None)
}

/// Runs `charter ARGS` as on a terminal with `input` typed; `screen` is the terminal's columns and
/// rows.
pub(crate) fn charter_typed(args: &[&str], input: &str, screen: Option<(u16, u16)>) -> Ran {
    on(args, input, true, screen)
}

fn on(args: &[&str], input: &str, terminal: bool, screen: Option<(u16, u16)>) -> Ran {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let exit = {
        let mut io = Io {
            out: &mut out,
            err: &mut err,
            input: Box::new(input.as_bytes()),
            color_out: false,
            color_err: false,
            terminal,
            ready: |_| true,
            screen,
        };
        run(std::iter::once("charter").chain(args.iter().copied()), &mut io)
    };
    Ran { code: exit.code(), out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

/// Runs `charter ARGS` without input.
pub(crate) fn charter(args: &[&str]) -> Ran {
    charter_with(args, "")
}

/// A temporary folder, removed at the end of the test.
pub(crate) struct Scratch(pub(crate) std::path::PathBuf);

impl Scratch {
    /// Creates a folder with a unique name.
    pub(crate) fn new(name: &str) -> Scratch {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(format!("charter-test-{process}-{count}-{name}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }
    /// Writes a file in the folder; returns its path.
    pub(crate) fn file(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
