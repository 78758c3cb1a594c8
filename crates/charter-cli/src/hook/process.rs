//! The process of a hook: whatever happens in it, it ends with exit code 0 and a decision, or with
//! exit code 2 and a line on standard error, within its deadline.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use charter_guard::client::{Answer, failure};

use super::{Args, DEADLINE, answer};

/// How long the last line may take to be written.
const LAST: Duration = Duration::from_millis(300);
/// The stack of the thread that decides.
const STACK_BYTES: usize = 16 << 20;

/// Answers a client, if the arguments are those of a client's call; else `None`, and the command
/// line goes on as usual.
pub fn main(args: &[OsString]) -> Option<ExitCode> {
    let begin = Instant::now();
    let first = args.iter().skip(1).find(|arg| !arg.to_string_lossy().starts_with('-'))?;
    if first != "hook" {
        return None;
    }
    let hook = match crate::args::parse_hook(args) {
        Ok(Some(hook)) => hook,
        Ok(None) => return None,
        Err(why) => return Some(end(&failure(&why))),
    };
    // A panic anywhere must not end in another exit code, or leave a thread that others wait for.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(|at| format!(" at {}:{}", at.file(), at.line())).unwrap_or_default();
        last_words(&failure(&format!("an internal error{place}; please report it")));
        std::process::exit(2);
    }));
    Some(supervised(hook, begin))
}

/// Decides on a thread of its own, and waits for it until the deadline.
fn supervised(args: Args, begin: Instant) -> ExitCode {
    let (sender, receiver) = mpsc::channel();
    let work = move || {
        #[cfg(debug_assertions)]
        fault();
        let answer = answer(&args, &mut std::io::stdin().lock(), begin);
        // Also on this thread: a reader that does not read must not hold up the end.
        let _ = sender.send(written(answer));
    };
    if let Err(e) = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work) {
        return end(&failure(&format!("cannot start a thread: {e}")));
    }
    match receiver.recv_timeout(DEADLINE.saturating_sub(begin.elapsed())) {
        Ok(answer) => end(&answer),
        Err(mpsc::RecvTimeoutError::Timeout) => end(&failure(&format!("no decision within {} s", DEADLINE.as_secs()))),
        Err(mpsc::RecvTimeoutError::Disconnected) => end(&failure("an internal error ended the decision")),
    }
}

/// Writes the decision. If it cannot be written, the answer is another one: without a decision,
/// exit code 0 would let the tool run.
fn written(answer: Answer) -> Answer {
    if answer.exit != 0 {
        return answer;
    }
    let why = |e: String| match answer.stdout.trim() {
        "" | "{}" => failure(&format!("the decision cannot be written: {e}")),
        decision => failure(&format!("the decision cannot be written: {e}; it is {decision}")),
    };
    if goes_nowhere() {
        return why("standard output is closed".to_owned());
    }
    let mut out = std::io::stdout().lock();
    match out.write_all(answer.stdout.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => answer,
        Err(e) => why(e.to_string()),
    }
}

/// Whether standard output is `/dev/null`: so it is if it was closed, too.
fn goes_nowhere() -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let null = std::fs::metadata("/dev/null").map(|found| found.rdev());
        let own = rustix::fs::fstat(rustix::stdio::stdout());
        matches!((null, own), (Ok(null), Ok(own)) if own.st_rdev == null)
    }
    #[cfg(not(unix))]
    false
}

/// Ends with what was answered; the decision is written already.
fn end(answer: &Answer) -> ExitCode {
    if answer.exit == 0 {
        return ExitCode::SUCCESS;
    }
    last_words(answer);
    // Other threads may hold locks that an orderly end would wait for.
    std::process::exit(i32::from(answer.exit));
}

/// Writes to standard error, unless nobody reads it.
fn last_words(answer: &Answer) {
    let (text, (sender, receiver)) = (answer.stderr.clone(), mpsc::channel());
    let write = move || {
        #[cfg(unix)]
        let _ = rustix::io::write(rustix::stdio::stderr(), text.as_bytes());
        #[cfg(not(unix))]
        let _ = std::io::stderr().write_all(text.as_bytes());
        let _ = sender.send(());
    };
    match std::thread::Builder::new().spawn(write) {
        Ok(_) => drop(receiver.recv_timeout(LAST)),
        Err(_) => {
            let _ = std::io::stderr().write_all(answer.stderr.as_bytes());
        }
    }
}

/// What the tests let happen; not in a release.
#[cfg(debug_assertions)]
#[allow(clippy::panic)]
fn fault() {
    match std::env::var("CHARTER_HOOK_FAULT").as_deref() {
        Ok("panic") => panic!("a test wants this"),
        Ok("hang") => std::thread::sleep(Duration::from_secs(3_600)),
        Ok("abort") => std::process::abort(),
        _ => {}
    }
}
