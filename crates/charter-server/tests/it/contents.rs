//! Contents of files that runs name.

use std::sync::Arc;

use charter_actors::Workspaces;
use charter_journal::MemoryStore;
use charter_kernel::Digest;
use charter_workspace::{Store, Unwatched};
use serde_json::{Value as Json, json};

use crate::site::{Client, PAYMENT, Site};

const FILES: &str = "
charter: 1
id: files
roles: {boss: {}}
actors: {read: {kind: workspace, do: curate}}
events: {NAME: {by: boss, data: {type: object}}}
context: {data: null}
initial: open
states:
  open: {on: {NAME: {actions: {assign: {data: '= event.data'}}}}}
";

struct Files {
    site: Site,
    store: Store,
    _folder: tempfile::TempDir,
}

impl Files {
    fn new() -> Files {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("files");
        let store = Store::open(&place).unwrap();
        let workspaces = Some(Workspaces::new(place));
        let memory = Arc::new(MemoryStore::new());
        let site = Site::offering(&[FILES, PAYMENT], memory, |options| options.workspaces = workspaces);
        Files { site, store, _folder: folder }
    }

    fn put(&self, content: &[u8]) -> Digest {
        self.store.put(content, &mut Unwatched).unwrap()
    }
}

fn name(client: &Client<'_>, run: &str, data: &Json) {
    let sent = client.post(&format!("/v1/runs/{run}/events"), &json!({"type": "NAME", "data": data}));
    assert_eq!(sent.status, 200, "{sent:?}");
}

#[test]
fn a_file_that_the_data_of_a_run_name_can_be_read_by_who_sees_the_run() {
    let files = Files::new();
    let (ana, olga) = (files.site.person("ana", &["files/boss"]), files.site.person("olga", &["payment/boss"]));
    let digest = files.put(b"<script>alert(1)</script>");
    let path = format!("/v1/runs/f1/blobs/{}", digest.hex());
    ana.start("files", "f1");
    assert_eq!(ana.get(&path).status, 404, "nothing names it yet");
    name(&ana, "f1", &json!({"changes": [{"path": "a", "new_sha256": digest.hex()}]}));
    let found = ana.get(&path);
    assert_eq!((found.status, found.body.as_str()), (200, "<script>alert(1)</script>"));
    assert_eq!(found.header("content-type"), Some("application/octet-stream"));
    assert_eq!(found.header("x-content-type-options"), Some("nosniff"));
    assert!(found.header("content-security-policy").unwrap().contains("sandbox"));
    assert_eq!(ana.get(&format!("/v1/runs/f1/blobs/{digest}")).status, 200, "with its prefix");
    assert_eq!(olga.get(&path).status, 404, "the run does not exist for her");
    assert_eq!(files.site.get(&path, &[]).status, 401);

    // The data of the past name it still.
    name(&ana, "f1", &json!({}));
    assert_eq!(ana.get(&path).status, 404);
    assert_eq!(ana.get(&format!("{path}?at=1")).status, 200);
    assert_eq!(ana.get(&format!("{path}?at=0")).status, 404);
    assert_eq!(ana.get(&format!("{path}?at=9")).status, 404);
}

#[test]
fn what_is_no_name_of_a_file_gives_nothing() {
    let files = Files::new();
    let ana = files.site.person("ana", &["files/boss", "payment/clerk"]);
    let digest = files.put(b"secret");
    ana.start("files", "f1");
    let status = |run: &str, digest: &str| ana.get(&format!("/v1/runs/{run}/blobs/{digest}")).status;
    for data in
        [json!({"text": digest.hex()}), json!({"sha256": format!("see {}", digest.hex())}), json!([digest.hex()])]
    {
        name(&ana, "f1", &json!({"data": data}));
        assert_eq!(status("f1", &digest.hex()), 404, "{data}");
    }
    let unknown = Digest::of_bytes(b"never stored");
    name(&ana, "f1", &json!({"sha256": unknown.hex()}));
    assert_eq!(status("f1", &unknown.hex()), 404);
    assert_eq!((status("f1", "zz"), status("f1", "..%2f..%2fetc%2fpasswd")), (400, 400));
    ana.start("payment", "p1");
    assert_eq!(status("p1", &digest.hex()), 404, "a charter without a workspace");

    let long = files.put(&vec![b'x'; (4 << 20) + 1]);
    name(&ana, "f1", &json!({"sha256": long.hex()}));
    let found = ana.get(&format!("/v1/runs/f1/blobs/{}", long.hex()));
    assert_eq!((found.status, &found.json()["code"]), (413, &json!("too-large")));
}
