//! Changesets as text: any content survives the round trip, content never becomes an operation, and
//! ambiguous text is refused.

use charter_kernel::Digest;
use charter_workspace::{Change, Changeset, Operation, RelPath, dogs, json};
use proptest::prelude::*;

fn path(text: &str) -> RelPath {
    RelPath::parse(text).unwrap()
}

/// Contents that are hard to serialize: fences, nested changesets, all kinds of line endings,
/// binary data.
fn any_content() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        "`{1,9}",
        Just("```paws-change\noperation: DELETE\nfile_path: smuggled\n```\n".to_owned()),
        Just("````\n".to_owned()),
        Just("\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("\r".to_owned()),
        Just("---\n**Changes:** 7\n# Heading\n".to_owned()),
        Just("\u{feff}\u{2028}\0".to_owned()),
        "[a-z :]{0,8}",
        any::<String>(),
    ];
    let text = prop::collection::vec(piece, 0..12).prop_map(|p| p.concat().into_bytes());
    prop_oneof![4 => text, 1 => prop::collection::vec(any::<u8>(), 0..300)]
}

fn any_changeset() -> impl Strategy<Value = Changeset> {
    let change = (0..3usize, any_content(), prop::option::of(any::<[u8; 32]>()), "[a-zä.` :-]{1,6}");
    let summary = "[a-z`*#]([ -~ä]{0,30}[a-z`*-])?";
    (summary, prop::collection::vec(change, 1..6)).prop_map(|(summary, changes)| {
        let changes = changes.into_iter().enumerate().map(|(i, (operation, content, old, name))| {
            // The number makes paths distinct; the suffixes avoid names that start or end with a
            // space.
            let path = path(&format!("{i}-{name}x/{i}"));
            match operation {
                0 => Change::create(path, content),
                1 => Change { old_sha256: old.map(Digest), ..Change::modify(path, Digest::default(), content) },
                _ => Change::delete(path, old.map(Digest)),
            }
        });
        Changeset::new(summary, changes.collect()).unwrap()
    })
}

proptest! {
    #[test]
    fn written_changesets_are_read_back(changeset in any_changeset()) {
        let text = dogs::write(&changeset);
        prop_assert_eq!(dogs::read(text.as_bytes()).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?, changeset.clone());
        let text = json::write(&changeset);
        prop_assert_eq!(json::read(text.as_bytes()).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?, changeset.clone());
        let value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(json::of_value(&value).unwrap().digest(), changeset.digest());
    }

    /// A fence of fixed length around any content: the text is refused, or gives exactly that
    /// content; never another operation.
    #[test]
    fn content_never_becomes_an_operation(content in any_content(), fence in 3usize..7) {
        let fence = "`".repeat(fence);
        let Ok(content) = String::from_utf8(content) else { return Ok(()) };
        let text = format!("# C\n**Summary:** s\n**Changes:** 1\n---\n```paws-change\noperation: CREATE\nfile_path: a\n```\n{fence}\n{content}\n{fence}\n");
        if let Ok(read) = dogs::read(text.as_bytes()) {
            prop_assert_eq!(read.changes().len(), 1);
            let change = &read.changes()[0];
            prop_assert_eq!((change.operation, change.path.as_str()), (Operation::Create, "a"));
            prop_assert_eq!(change.content.as_deref().unwrap().to_vec(), format!("{content}\n").into_bytes());
        }
    }

    /// A damaged changeset is refused or read as written: no panic, no additional change.
    #[test]
    fn damaged_text_is_refused_or_well_formed(changeset in any_changeset(), at in any::<prop::sample::Index>(), with in ".{0,3}|\n|\r\n|```\n", cut in 0usize..4) {
        let mut text = dogs::write(&changeset);
        let mut at = at.index(text.len() + 1);
        while !text.is_char_boundary(at) { at -= 1; }
        let mut end = (at + cut).min(text.len());
        while !text.is_char_boundary(end) { end -= 1; }
        text.replace_range(at..end.max(at), &with);
        if let Ok(read) = dogs::read(text.as_bytes()) {
            prop_assert!(read.changes().len() <= changeset.changes().len());
            prop_assert_eq!(dogs::read(dogs::write(&read).as_bytes()).unwrap(), read);
        }
    }

    #[test]
    fn random_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(dogs::read(&bytes).is_err());
        prop_assert!(json::read(&bytes).is_err());
    }
}

fn leniently(text: &[u8]) -> Result<(Changeset, Vec<String>), charter_workspace::ChangesetError> {
    let (draft, assumed) = dogs::draft_leniently(text)?;
    Ok((draft.on(&Default::default())?, assumed))
}

fn form(body: &str) -> String {
    format!("# Proposal\n\n**Summary:** s\n**Changes:** 1\n\n---\n\n{body}")
}

/// Checks the start of the error message for an invalid changeset.
fn check(text: &str, expected: &str) {
    let refused = dogs::read(text.as_bytes()).expect_err(text).to_string();
    assert!(refused.starts_with(expected), "{refused}\n  expected: {expected}");
}

#[test]
fn errors_name_the_line() {
    let head = "```paws-change\noperation: CREATE\nfile_path: a\n```\n";
    check("", "line 1: unexpected end of text: expected a heading");
    check("Proposal\n", "line 1: expected a heading (`# Changeset`), found `Proposal`");
    check("# P\n**Changes:** 1\n", "line 2: expected `**Summary:** ` and a summary, found `**Changes:** 1`");
    check("# P\n**Summary:** s\n**Changes:** one\n", "line 3: expected `**Changes:** ` and their number, found");
    check("# P\n**Summary:** s\n**Changes:** 1\nx", "line 4: expected a rule (`---`), found `x`");
    check("# P\n**Summary:** s\n**Changes:** 1\n---", "line 3: `**Changes:** 1`, but the text has 0 changes");
    check(&form("Here is the change:\n"), "line 8: expected the start of a change, found `Here is the change:`");
    check(&form("```paws-change\noperation: CREATE\n```\n"), "line 8: change 1: the change has no `file_path`");
    check(
        &form("```paws-change\noperation: RENAME\nfile_path: a\n```\n"),
        "line 9: change 1: invalid `operation`: `RENAME`; write CREATE, MODIFY or DELETE",
    );
    check(
        &form("```paws-change\noperation: CREATE\noperation: CREATE\n"),
        "line 10: change 1: `operation` is given twice",
    );
    check(&form("```paws-change\nmode: 755\n"), "line 9: change 1: unknown key `mode`");
    check(
        &form("```paws-change\nfile_path: ../../etc/passwd\n"),
        "line 9: change 1 (`../../etc/passwd`): the path `../../etc/passwd` contains `..`",
    );
    check(&form("```paws-change\nfile_path:a\n"), "line 9: change 1: expected `key: value`, found `file_path:a`");
    check(
        &form("```paws-change\noperation: CREATE\n"),
        "line 8: change 1: the change has no `file_path`".split("change 1").next().unwrap(),
    );
    check(&form(head), "line 11: change 1 (`a`): unexpected end of text: expected the content");
    check(
        &form(&format!("{head}{head}```\n```\n")),
        "line 12: change 1 (`a`): expected the content, found ````paws-change`",
    );
    check(
        &form(&format!("{head}```\nnever closed\n")),
        "line 12: change 1 (`a`): the content fence is not closed; close it with a line of 3 backticks",
    );
    check(
        &form(&format!("{head}```\n```js\n```\n```\n")),
        "line 13: change 1 (`a`): ambiguous content: 3 backticks in a row inside a fence of 3; use a fence of 4 or more backticks for this content",
    );
    check(&form(&format!("{head}```\nx\n```\nDone.\n")), "line 15: expected the start of a change, found `Done.`");
    check(
        &form("```paws-change\noperation: DELETE\nfile_path: a\n```\n```\nx\n```\n"),
        "line 12: expected the start of a change, found `````",
    );
    check(
        &form("```paws-change\noperation: DELETE\nfile_path: a\nfinal_newline: true\n```\n"),
        "line 8: change 1 (`a`): DELETE has no content",
    );
    check(&form(&head.replace('\n', "\r\n")), "line 8: the line ends with CRLF");
    check(&form(&format!("{head}```\nx\r\n```\r\n")), "line 14: change 1 (`a`): the line ends with CRLF");
    let twice = form(&format!("{head}```\n```\n{head}```\n```\n")).replace("**Changes:** 1", "**Changes:** 2");
    check(&twice, "line 14: change 2 (`a`): same path as change 1");
    let off = |value: &str, content: &str| {
        form(&format!("```paws-change\noperation: CREATE\nfile_path: a\n{value}\n```\n```\n{content}```\n"))
    };
    check(
        &off("final_newline: false", ""),
        "line 13: change 1 (`a`): `final_newline: false`, but the content is empty",
    );
    check(
        &off("final_newline: false", "x\n\n"),
        "line 13: change 1 (`a`): `final_newline: false`, but the content ends with an empty line",
    );
    check(&off("encoding: base64", "%%\n"), "line 13: change 1 (`a`): invalid base64 content");
    check(&off("encoding: latin-1", "x\n"), "line 11: change 1 (`a`): invalid `encoding`: `latin-1`");
    check(&off("old_sha256: 12", "x\n"), "line 11: change 1 (`a`): invalid `old_sha256`: `12`");
    let not_utf8 = [form(head).as_bytes(), b"```\n\xff\n```\n"].concat();
    let refused = dogs::read(&not_utf8).unwrap_err().to_string();
    assert_eq!(refused, "line 13: the text is not UTF-8; write binary content with `encoding: base64`");
}

#[test]
fn contents_keep_their_line_endings() {
    let read = |value: &str, content: &str| {
        let text =
            form(&format!("```paws-change\noperation: CREATE\nfile_path: a\n{value}```\n\n````text\n{content}````\n"));
        dogs::read(text.as_bytes()).unwrap().changes()[0].content.clone().unwrap()
    };
    assert_eq!(read("", ""), b"");
    assert_eq!(read("", "\n"), b"\n");
    assert_eq!(read("", "a\r\nb\r\n"), b"a\r\nb\r\n");
    assert_eq!(read("final_newline: false\n", "a\n"), b"a");
    assert_eq!(read("final_newline: true\n", "a\n"), b"a\n");
    assert_eq!(
        read("", "```paws-change\noperation: DELETE\nfile_path: b\n```\n"),
        b"```paws-change\noperation: DELETE\nfile_path: b\n```\n"
    );
    assert_eq!(read("encoding: base64\n", "/wA=\n"), b"\xff\0");
}

#[test]
fn json_is_read_strictly() {
    let refused = |text: &str| json::read(text.as_bytes()).unwrap_err().to_string();
    let change = |body: &str| refused(&format!("{{\"summary\":\"s\",\"changes\":[{{{body}}}]}}"));
    assert!(
        refused("{\"summary\":\"s\",\n\"changes\":[],\"note\":1}")
            .starts_with("line 2: invalid changeset: unknown key `note`")
    );
    assert!(refused("{\"summary\":\"s\",\"summary\":\"t\",\"changes\":[]}").contains("duplicate key `summary`"));
    assert!(refused("{\"summary\":\"s\",\"changes\":[]}").starts_with("the changeset has no changes"));
    assert!(change("\"operation\":\"CREATE\"").contains("missing key `file_path`"));
    assert!(
        change("\"operation\":\"CREATE\",\"file_path\":\"/a\",\"content\":\"\"")
            .starts_with("change 1 (`/a`): the path is absolute")
    );
    assert!(change("\"operation\":\"CREATE\",\"file_path\":\"a\"").contains("the new content is missing"));
    assert!(
        change("\"operation\":\"CREATE\",\"file_path\":\"a\",\"content\":\"\",\"content_base64\":\"\"")
            .contains("both `content` and `content_base64`")
    );
    assert!(
        change("\"operation\":\"create\",\"file_path\":\"a\",\"content\":\"\"")
            .contains("write CREATE, MODIFY or DELETE")
    );
    assert!(
        change("\"operation\":\"DELETE\",\"file_path\":\"a\",\"old_sha256\":\"x\"").contains("64 lowercase hex digits")
    );
}

/// A round trip of 50 MB. The limit is generous, for slow unoptimized builds; it detects quadratic
/// behavior.
#[test]
fn fifty_megabytes_are_quick() {
    let line = "let fence = \"```\"; // 0123456789 0123456789 0123456789 0123456789 01234\n";
    let content = line.repeat(50_000_000 / line.len());
    let changeset = Changeset::new("large", vec![Change::create(path("large"), content)]).unwrap();
    let started = std::time::Instant::now();
    let text = dogs::write(&changeset);
    let read = dogs::read(text.as_bytes()).unwrap();
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    assert!(read == changeset);
    eprintln!("50 MB written and read in {:?}", started.elapsed());
}

/// What models write around a changeset, in one reading; and what could be read in two ways.
#[test]
fn what_models_write_is_taken_where_it_is_unambiguous() {
    let change =
        "```paws-change\noperation: create\nfile_path: /src/a.rs\n```\n\nThe file:\n\n```rust\nfn a() {}\n```\n";
    let text = format!("Sure! Here is what I would do.\n\n{change}\nLet me know if this works.\n");
    assert!(dogs::read(text.as_bytes()).is_err());
    let (read, assumed) = leniently(text.as_bytes()).unwrap();
    let expected = Changeset::new("CREATE src/a.rs", vec![Change::create(path("src/a.rs"), "fn a() {}\n")]).unwrap();
    assert_eq!(read, expected);
    let all = assumed.join("; ");
    for part in ["`create` is CREATE", "`/src/a.rs` is `src/a.rs`", "1 line of text before", "no summary"] {
        assert!(all.contains(part), "{part}: {all}");
    }
    // With a head, and nothing to assume about what is written as it should be.
    let head = format!("Certainly.\n\n## Plan\n\n**Summary:** Adds a\n**Changes:** 1\n\n---\n\n{change}");
    assert_eq!(leniently(head.as_bytes()).unwrap().0.summary(), "Adds a");
    let strict = dogs::write(&expected);
    assert_eq!(leniently(strict.as_bytes()).unwrap(), (expected, vec![]));

    let refused = |text: &str| leniently(text.as_bytes()).unwrap_err().to_string();
    // A change is missing.
    assert!(refused(&head.replace("**Changes:** 1", "**Changes:** 2")).contains("the text has 1 changes"));
    // The content has a fence of its own, so that the rest of it looks like text.
    let inner = change.replace("fn a() {}\n", "Run:\n```\ncargo test\n```\nand look.\n");
    assert!(refused(&inner).contains("expected the start of a change"), "{}", refused(&inner));
    // Paths that lead out, and what is no operation.
    assert!(refused(&change.replace("/src/a.rs", "/../a")).contains("`../a`"));
    assert!(refused(&change.replace("create", "rename")).contains("invalid `operation`: `rename`"));
    assert!(refused(&change.replace("Here", "").replace("The file:", "**Summary:** x\r")).contains("CRLF"));
}
