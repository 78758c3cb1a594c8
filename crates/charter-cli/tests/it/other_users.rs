//! A journal file and users other than its owner. The tests need root, and are skipped otherwise.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::Scratch;
use crate::support::processes::{Process, said, until};

const CHART: &str = "{charter: 1, id: c, events: {E: {}}, states: {a: {on: {E: {}}}}}";

/// A folder that everybody can write to, with the program.
struct Place(Scratch);

impl Place {
    /// `None` if this is not root, or there is no `setpriv`.
    fn new(name: &str) -> Option<Place> {
        let able = Command::new("setpriv").args(["--reuid", "4001", "true"]).stderr(Stdio::null()).status();
        if !able.is_ok_and(|status| status.success()) {
            eprintln!("skipped: `setpriv` is not available or not permitted");
            return None;
        }
        let place = Scratch::new(name);
        std::fs::set_permissions(&place.0, std::fs::Permissions::from_mode(0o777)).unwrap();
        place.file("c.yaml", CHART);
        let program = place.0.join("charter");
        if std::fs::hard_link(env!("CARGO_BIN_EXE_charter"), &program).is_err() {
            std::fs::copy(env!("CARGO_BIN_EXE_charter"), &program).unwrap();
        }
        Some(Place(place))
    }

    fn command(&self, user: &[&str], args: &str) -> Command {
        let mut command = Command::new("setpriv");
        command.args(user).arg("./charter").args(args.split_whitespace()).current_dir(&self.0.0).env_remove("HOME");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn any(&self, user: &[&str], args: &str) -> (i32, String, String) {
        said(self.command(user, args).output().unwrap())
    }

    #[track_caller]
    fn run(&self, user: &[&str], args: &str) {
        let (code, out, err) = self.any(user, args);
        assert_eq!(code, 0, "charter {args}\n{out}{err}");
    }

    /// Lets all users read the journal.
    fn share(&self) {
        for (name, _) in self.files() {
            std::fs::set_permissions(self.0.0.join(name), std::fs::Permissions::from_mode(0o644)).unwrap();
        }
    }

    /// The modes of the files of the journal.
    fn modes(&self) -> Vec<(String, u32)> {
        let mode = |name: &str| std::fs::metadata(self.0.0.join(name)).unwrap().permissions().mode() & 0o777;
        self.files().into_iter().map(|(name, _)| (name.clone(), mode(&name))).collect()
    }

    /// The files of the journal, with their owners.
    fn files(&self) -> Vec<(String, u32)> {
        let files = std::fs::read_dir(&self.0.0).unwrap().map(|file| {
            let file = file.unwrap();
            (file.file_name().into_string().unwrap(), file.metadata().unwrap().uid())
        });
        let mut files: Vec<_> = files.filter(|(name, _)| name.starts_with("charter.db")).collect();
        files.sort();
        files
    }
}

const OWNER: &[&str] = &["--reuid", "4001", "--regid", "4001", "--clear-groups"];
const OTHER: &[&str] = &["--reuid", "4002", "--regid", "4002", "--clear-groups"];
const ROOT: &[&str] = &["--reuid", "0"];
/// Root that cannot give files away.
const CONTAINER: &[&str] = &["--bounding-set", "-chown"];

#[test]
fn a_reader_of_another_user_leaves_no_files() {
    let Some(place) = Place::new("guests") else { return };
    place.run(OWNER, "run c.yaml --run r");
    place.share();
    let files = place.files();
    for reader in [OTHER, CONTAINER, ROOT] {
        for command in ["runs", "show r", "log r", "verify", "export r -o /dev/null"] {
            place.run(reader, command);
            assert_eq!(place.files(), files, "{command}");
        }
    }
    let (_, out, _) = place.any(OTHER, "sql charter.db SELECT/**/count(*)/**/n/**/FROM/**/records --json");
    assert!(out.contains("\"n\":1"), "{out}");
    assert_eq!(place.files(), files);
    place.run(OWNER, "send r E");
}

#[test]
fn a_reader_of_another_user_sees_what_a_writer_has_in_its_log() {
    let Some(place) = Place::new("guests-log") else { return };
    place.0.file(
        "w.yaml",
        "{charter: 1, id: w, events: {E: {}}, actors: {w: {kind: exec, command: [sleep, '60']}}, states: {a: {on: {E: b}}, b: {invoke: {src: w, onDone: a, onError: a}}}}",
    );
    place.run(OWNER, "run w.yaml --run r");
    place.share();
    let mut host = Process(Some(place.command(OWNER, "send r E").spawn().unwrap()));
    until("a record", || place.any(OWNER, "log r --json").1.lines().count() == 2);
    let records = |reader| place.any(reader, "log r --json").1.lines().count();
    assert_eq!((records(OTHER), records(CONTAINER)), (2, 2));
    host.kill();
    drop(host);
    assert_eq!((records(OTHER), records(CONTAINER)), (2, 2));
    // What SQLite can make again.
    std::fs::remove_file(place.0.0.join("charter.db-shm")).unwrap();
    assert_eq!((records(OTHER), records(CONTAINER)), (2, 2));
    assert!(place.files().iter().all(|(name, user)| *user == 4001 && !name.ends_with("-shm")), "{:?}", place.files());
    place.run(OWNER, "send r charter.cancel --role operator");
}

#[test]
fn another_user_who_wants_to_write_is_told_at_once_whose_the_journal_is() {
    let Some(place) = Place::new("guests-write") else { return };
    place.run(OWNER, "run c.yaml --run r");
    let file = place.0.0.join("charter.db");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    let refused = |user, command: &str, why: &str| {
        let begin = Instant::now();
        let (code, _, err) = place.any(user, command);
        assert!(code == 2 && err.contains(why), "{command}: {err}");
        assert!(begin.elapsed() < Duration::from_millis(1_500), "{:?}", begin.elapsed());
    };
    let why = "error: `charter.db` belongs to another user (uid 4001); only that user writes to it";
    for command in ["send r E", "fork r --at 0 --run f", "run c.yaml"] {
        refused(OTHER, command, why);
    }
    let files = place.files();
    // While its owner has it open, and if root has it open.
    for (holder, user, why) in [
        (OWNER, OTHER, why),
        (OWNER, ROOT, "holds the journal and belongs to another user (uid 4001)"),
        (ROOT, OWNER, "holds the journal and belongs to another user (uid 0)"),
    ] {
        let mut host = Process(Some(place.command(holder, "host").spawn().unwrap()));
        until("a holder", || place.files().iter().any(|(name, _)| name.ends_with("-socket")));
        refused(user, "send r E", why);
        host.kill();
        drop(host);
        // Neither a killed holder nor root leaves what keeps the owner out.
        place.run(OWNER, "send r E");
        assert_eq!(place.files(), files);
    }
}

#[test]
fn a_journal_is_private_until_it_is_shared() {
    let Some(place) = Place::new("private") else { return };
    // Everybody may read what programs create.
    let open = |args: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("umask 0; exec setpriv {} ./charter {args}", OWNER.join(" "))]);
        let out = command.current_dir(&place.0.0).env_remove("HOME").stdin(Stdio::null()).output().unwrap();
        said(out)
    };
    assert_eq!(open("run c.yaml --run r").0, 0);
    assert_eq!(open("backup -o charter.db-copy").0, 0);
    assert_eq!(open("export r -o charter.db-r.jsonl").0, 0);
    let modes = place.modes();
    assert!(modes.len() >= 4 && modes.iter().all(|(_, mode)| *mode == 0o600), "{modes:?}");
    let mut host = Process(Some(place.command(OWNER, "host").spawn().unwrap()));
    until("a holder", || place.files().iter().any(|(name, _)| name.ends_with("-socket")));
    let modes = place.modes();
    assert!(modes.iter().any(|(name, _)| name.ends_with("-lock")), "{modes:?}");
    assert!(modes.iter().any(|(name, _)| name.ends_with("-wal")), "{modes:?}");
    assert!(modes.iter().all(|(_, mode)| *mode == 0o600), "{modes:?}");
    host.kill();
    drop(host);
    assert_eq!(place.any(OTHER, "log r").0, 2);
    assert_eq!(open("verify charter.db").2, "");
    // A journal of before keeps its mode, and so do the files beside it.
    place.share();
    std::fs::remove_file(place.0.0.join("charter.db-head")).unwrap();
    assert_eq!(open("send r E").0, 0);
    assert!(place.modes().contains(&("charter.db-head".to_owned(), 0o644)), "{:?}", place.modes());
    let (_, _, warned) = open("verify charter.db");
    let expected = "warning: other users of this machine can read `charter.db` (mode 644); `chmod go= charter.db ";
    assert_eq!(warned.matches(expected).count(), 1, "{warned}");
    assert_eq!(place.any(OTHER, "log r").0, 0);
}

#[test]
fn what_root_writes_belongs_to_the_owner_of_the_journal() {
    let Some(place) = Place::new("guests-root") else { return };
    place.run(OWNER, "run c.yaml --run r");
    std::fs::remove_file(place.0.0.join("charter.db-head")).unwrap();
    place.run(ROOT, "send r E");
    place.run(OWNER, "send r E");
    assert!(place.files().iter().all(|(_, user)| *user == 4001), "{:?}", place.files());
    // Another program may leave such files.
    std::fs::write(place.0.0.join("charter.db-shm"), "").unwrap();
    std::fs::write(place.0.0.join("charter.db-wal"), "").unwrap();
    let (code, _, err) = place.any(OWNER, "send r E");
    assert_eq!(code, 2);
    assert!(err.contains("another user has made ") && err.contains("charter.db-shm`, and you cannot"), "{err}");
    assert!(err.contains("give it to the owner of the journal: `sudo chown 4001 "), "{err}");
}
