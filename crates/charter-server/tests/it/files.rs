//! The files of the page, and what may run in it.

use crate::site::Site;

#[test]
fn a_browser_gets_the_page_and_a_program_addresses() {
    let site = Site::new();
    let page = site.get("/", &[("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")]);
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")), "{page:?}");
    assert_eq!(page.header("vary"), Some("Accept, Accept-Encoding"));
    let policy = page.header("content-security-policy").unwrap();
    for part in
        ["default-src 'none'", "script-src 'self'", "style-src 'self'", "base-uri 'none'", "frame-ancestors 'none'"]
    {
        assert!(policy.split(';').any(|directive| directive.trim() == part), "{part}: {policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    for inline in ["<script>", "<style", " style=", " onclick="] {
        assert!(!page.body.contains(inline), "the policy would refuse {inline}");
    }
    let program = site.get("/", &[]);
    assert_eq!(program.json()["runs"], "/v1/runs");
}

#[test]
fn files_are_asked_for_again_only_when_they_changed() {
    let site = Site::new();
    let first = site.get("/page/app.js", &[]);
    assert_eq!((first.status, first.header("content-type")), (200, Some("text/javascript; charset=utf-8")));
    let tag = first.header("etag").unwrap();
    let again = site.get("/page/app.js", &[("If-None-Match", tag)]);
    assert_eq!((again.status, again.body.as_str()), (304, ""), "{again:?}");
    assert_eq!(site.get("/page/app.js", &[("If-None-Match", "\"0\"")]).status, 200);
}

#[test]
fn pages_of_named_origins_can_load_the_parts() {
    let site = Site::new();
    let origin = format!("http://localhost:{}", site.address.port());
    for path in ["widget/sentinel-fsm-widget.js", "components/charter-diff.js", "lib/form.js", "embed.html"] {
        let answer = site.get(&format!("/page/{path}"), &[("Origin", &origin)]);
        let allowed = answer.header("access-control-allow-origin");
        assert_eq!((answer.status, allowed), (200, Some(origin.as_str())), "{path}: {answer:?}");
        assert!(answer.head.to_ascii_lowercase().contains("\r\nvary: origin"), "{path}: {}", answer.head);
    }
    let page = site.get("/page/embed.html", &[]).body;
    for inline in ["<script>", "<style", " style=", " onclick="] {
        assert!(!page.contains(inline), "the policy would refuse {inline}");
    }
}

#[test]
fn files_are_compressed_for_who_reads_it() {
    let site = Site::new();
    let length = |coding: &str| {
        let answer = site.get("/page/lit.js", &[("Accept-Encoding", coding)]);
        assert_eq!(answer.header("content-encoding").is_some(), coding.contains("gzip"), "{coding}");
        answer.header("content-length").unwrap().parse::<usize>().unwrap()
    };
    assert!(length("br, gzip;q=0.8") * 2 < length("identity"));
}

#[test]
fn nothing_but_the_files_of_the_page_is_served() {
    let site = Site::new();
    for path in [
        "/page/../Cargo.toml",
        "/page/%2e%2e/Cargo.toml",
        "/page/..%2fCargo.toml",
        "/page//etc/passwd",
        "/page/",
        "/page/lib",
        "/page/lit.d.ts",
        "/page/tests/support/browser.mjs",
        "/page/tests/support/blank.html",
        "/page/lib/none.js",
    ] {
        let answer = site.get(path, &[]);
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{path}");
    }
}
