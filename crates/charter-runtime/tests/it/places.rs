//! What a command names is what it named when the run started, however it is spelled: with `..`,
//! through links, as a folder, or as a file that did not exist.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use charter_actors::VirtualClock;
use charter_journal::{MemoryStore, Store, verify};
use charter_runtime::{Charter, Runtime, SendEvent};
use serde_json::{Value as Json, json};

use crate::common::{BEGIN, open, options, who};

const SOURCE: &str = "
charter: 1
id: places
roles: {boss: {}}
events: {GO: {by: boss}}
context: {error: null}
actors: {work: {kind: exec, command: COMMAND}}
initial: idle
states:
  idle: {on: {GO: working}}
  working:
    invoke:
      src: work
      timeout: 1h
      onDone: done
      onError: {target: failed, actions: {assign: {error: '= event.error'}}}
  done: {type: final}
  failed: {type: final}
";

fn write(file: impl AsRef<Path>, text: &str) {
    fs::create_dir_all(file.as_ref().parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

/// A folder `site` beside `outside`, with the files of the attacks. Scripts leave a file `ran`.
fn site(command: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let all = tempfile::tempdir().unwrap();
    let site = all.path().join("site");
    write(site.join("charter.yaml"), &SOURCE.replace("COMMAND", command));
    for file in ["work.sh", "pkg/main.sh", "pkg/deep/lib.sh", "sub/inner/x", "other/main.sh"] {
        write(site.join(file), "echo 1");
    }
    for file in ["work.sh", "pkg/main.sh", "sub/x"] {
        write(all.path().join("outside").join(file), "echo 2 > ran; echo 2");
    }
    symlink("work.sh", site.join("link.sh")).unwrap();
    symlink("pkg", site.join("link")).unwrap();
    for (link, to) in [
        ("site/nothing.sh", "../outside/late.sh"),
        ("site/void", "../outside/late"),
        ("site/pkg/nothing.sh", "../../outside/late.sh"),
        ("in.sh", "site/work.sh"),
        ("in", "site/pkg"),
        ("into-nothing.sh", "site/late.sh"),
    ] {
        symlink(to, all.path().join(link)).unwrap();
    }
    (all, site)
}

/// Starts a run, changes the folder, and returns the error of the actor; null if it had none.
fn after(command: &str, change: impl FnOnce(&Path)) -> Json {
    let (_all, site) = site(command);
    let work = async {
        let clock = VirtualClock::new(BEGIN);
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let host = open(store.clone(), clock.clone(), Charter::load(&site).unwrap(), options(&clock)).await;
        host.start("r", json!({})).await;
        change(&site);
        let (runtime, go) = (&host.runtime, SendEvent::new("r", "GO", json!({}), who("ann", &["boss"])));
        runtime.send(go).await.unwrap();
        let view = runtime.ended("r").await.unwrap();
        assert_eq!(verify(store.as_ref(), None).unwrap().findings, []);
        view.snapshot.actor("root").unwrap().context()["error"].clone()
    };
    let error = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
    assert!(!site.join("ran").exists(), "{command}");
    error
}

fn relink(link: &Path, to: &str) {
    let old = link.with_extension("old");
    fs::rename(link, old).unwrap();
    symlink(to, link).unwrap();
}

type Change = Box<dyn Fn(&Path)>;

#[test]
fn altered_code_does_not_run_however_it_is_named() {
    let evil = |file: &'static str| move |site: &Path| write(site.join(file), "echo 3 > ran; echo 3");
    let attacks: [(&str, &str, Change); 24] = [
        ("[sh, sub/../work.sh]", "work.sh", Box::new(evil("work.sh"))),
        ("[sh, ../site/work.sh]", "work.sh", Box::new(evil("work.sh"))),
        ("[sh, .//./work.sh]", "work.sh", Box::new(evil("work.sh"))),
        ("[sub/../work.sh]", "work.sh", Box::new(evil("work.sh"))),
        // `sub` leads elsewhere, so `..` of it does, too.
        ("[sh, sub/../work.sh]", "work.sh", Box::new(|site| relink(&site.join("sub"), "../outside/sub"))),
        ("[sh, link.sh]", "link.sh", Box::new(evil("work.sh"))),
        ("[sh, link.sh]", "link.sh", Box::new(|site| relink(&site.join("link.sh"), "../outside/work.sh"))),
        ("[sh, -c, 'sh pkg/main.sh', pkg]", "pkg/main.sh", Box::new(evil("pkg/main.sh"))),
        ("[sh, -c, 'sh pkg/main.sh', pkg/]", "pkg/deep/lib.sh", Box::new(evil("pkg/deep/lib.sh"))),
        ("[sh, -c, 'sh pkg/added.sh', --from=pkg]", "pkg/added.sh", Box::new(evil("pkg/added.sh"))),
        ("[sh, -c, 'sh link/main.sh', link]", "link/main.sh", Box::new(evil("pkg/main.sh"))),
        ("[sh, -c, 'sh pkg/main.sh', pkg]", "pkg/deep/lib.sh", Box::new(|site| relink(&site.join("pkg"), "other"))),
        (
            "[sh, -c, 'sh pkg/main.sh', pkg]",
            "pkg",
            Box::new(|site| {
                fs::remove_dir_all(site.join("pkg")).unwrap();
                write(site.join("pkg"), "echo 3 > ran");
            }),
        ),
        ("[sh, -c, 'sh later.sh', later.sh]", "later.sh", Box::new(evil("later.sh"))),
        ("[sh, -c, 'sh later/x.sh', later]", "later", Box::new(evil("later/x.sh"))),
        ("[sh, -c, 'sh sub/late.sh', sub/../sub/late.sh]", "sub/late.sh", Box::new(evil("sub/late.sh"))),
        // Links that led to nothing.
        ("[sh, -c, 'sh nothing.sh', nothing.sh]", "nothing.sh", Box::new(evil("../outside/late.sh"))),
        ("[sh, nothing.sh]", "nothing.sh", Box::new(evil("../outside/late.sh"))),
        ("[sh, -c, 'sh void/x.sh', void]", "void", Box::new(evil("../outside/late/x.sh"))),
        ("[sh, pkg/nothing.sh, pkg]", "pkg/nothing.sh", Box::new(evil("../outside/late.sh"))),
        ("[sh, ../into-nothing.sh]", "../into-nothing.sh", Box::new(evil("late.sh"))),
        // Links outside the folder that led into it, and lead elsewhere now.
        ("[sh, ../in.sh]", "../in.sh", Box::new(|site| relink(&site.join("../in.sh"), "outside/work.sh"))),
        (
            "[sh, -c, 'sh ../in/main.sh', ../in]",
            "../in/deep/lib.sh",
            Box::new(|site| relink(&site.join("../in"), "outside/pkg")),
        ),
        ("[../in.sh]", "../in.sh", Box::new(|site| relink(&site.join("../in.sh"), "outside/work.sh"))),
    ];
    for (command, file, change) in attacks {
        let error = after(command, change);
        assert_eq!((&error["code"], &error["file"]), (&json!("actor-changed"), &json!(file)), "{command}: {error}");
    }
}

#[test]
fn what_did_not_change_runs() {
    for command in [
        "[sh, sub/../work.sh]",
        "[sh, link.sh, pkg, link, later.sh, ../outside, /]",
        "[sh, ../site/work.sh]",
        "[sh, ../in.sh, ../in, nothing.sh, void]",
    ] {
        let error = after(command, |site| write(site.join("unnamed.sh"), "echo 3 > ran"));
        assert_eq!(error, Json::Null, "{command}");
    }
}

#[test]
fn the_folder_itself_and_large_folders_are_refused() {
    for (command, why) in [
        ("[sh, work.sh, .]", "the command names `.`, the charter's folder itself"),
        ("[sh, work.sh, pkg/..]", "the command names `pkg/..`, the charter's folder itself"),
        ("[sh, work.sh, many]", "the command names the folder `many`, which has more than 1000 files and folders"),
        ("[sh, work.sh, circle]", "the command names the folder `circle`, which has more than 1000 files"),
        ("[./pkg]", "no file `pkg`"),
    ] {
        let (_all, site) = site(command);
        for n in 0..1_001 {
            write(site.join(format!("many/{n}")), "");
        }
        // Each round through the links has two entries.
        fs::create_dir(site.join("circle")).unwrap();
        symlink(".", site.join("circle/a")).unwrap();
        symlink(".", site.join("circle/b")).unwrap();
        let work = async {
            let clock = VirtualClock::new(BEGIN);
            let (runtime, _) = Runtime::open(Arc::new(MemoryStore::new()), options(&clock)).await.unwrap();
            runtime.add(Charter::load(&site).unwrap()).await.unwrap_err().to_string()
        };
        let error = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
        assert!(error.contains(why), "{command}: {error}");
    }
}
