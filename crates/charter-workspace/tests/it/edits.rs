//! Edits: each finds its text exactly once in the file that was shown, or the whole changeset is
//! refused; the changeset has the resulting content.

use std::collections::BTreeMap;

use charter_kernel::Digest;
use charter_workspace::{Change, Changeset, ChangesetError, RelPath, dogs, json};
use proptest::prelude::*;
use serde_json::{Value as Json, json as value};

const OLD: &str = "fn one() {}\n\nfn two() {\n    one();\n    one();\n}\r\nlast";

fn files(old: &str) -> BTreeMap<RelPath, Vec<u8>> {
    [(RelPath::parse("a.rs").unwrap(), old.into()), (RelPath::parse("b").unwrap(), vec![0xff, 0xfe])].into()
}

fn with(change: Json, old: &str) -> Result<Changeset, ChangesetError> {
    let (draft, assumed) = json::draft_leniently(&value!({"summary": "s", "changes": [change]}))?;
    assert!(assumed.is_empty(), "{assumed:?}");
    draft.on(&files(old))
}

fn modify(edits: &[(&str, &str)]) -> Json {
    let edits: Vec<Json> =
        edits.iter().map(|(search, replace)| value!({"search": search, "replace": replace})).collect();
    value!({"operation": "MODIFY", "file_path": "a.rs", "edits": edits})
}

fn content(changeset: &Changeset) -> &str {
    std::str::from_utf8(changeset.changes()[0].content.as_ref().unwrap()).unwrap()
}

#[test]
fn the_changeset_has_the_whole_new_content() {
    let edits = [("\r\nlast", "\n"), ("one() {}", "one() -> u8 {\n    1\n}"), ("\n\nfn two", "\nfn two")];
    let made = with(modify(&edits), OLD).unwrap();
    let new = "fn one() -> u8 {\n    1\n}\nfn two() {\n    one();\n    one();\n}\n";
    assert_eq!(content(&made), new);
    // What is approved does not depend on how it was written.
    let shown = BTreeMap::from([(RelPath::parse("a.rs").unwrap(), Digest::of_bytes(OLD.as_bytes()))]);
    let path = RelPath::parse("a.rs").unwrap();
    let whole = Changeset::new("s", vec![Change::modify(path, Digest::of_bytes(OLD.as_bytes()), new)]).unwrap();
    assert_eq!(made.bind(&shown).unwrap().digest(), whole.digest());
}

#[test]
fn text_that_is_not_there_exactly_once_refuses_the_whole_changeset() {
    let refused = |edits: &[(&str, &str)], old| with(modify(edits), old).unwrap_err().to_string();
    assert_eq!(
        refused(&[("fn one", "fn three"), ("    one();", "")], OLD),
        "change 1 (`a.rs`): edit 2 (`one();`): its old text is in the file 2 times; quote more of the lines around it, so that it is there exactly once"
    );
    assert_eq!(
        refused(&[("fn  one", "")], OLD),
        "change 1 (`a.rs`): edit 1 (`fn  one`): its old text is not in the file; copy it from the context exactly, with its spaces and line ends"
    );
    assert!(refused(&[("aa", "b")], "aaa").contains("is in the file 2 times"), "overlapping places count");
    assert!(refused(&[("", "b")], OLD).contains("its old text is empty"));
    assert!(refused(&[], OLD).contains("the change has 0 edits"));
    assert_eq!(
        refused(&[("two() {\n", "x"), ("fn one", "y"), ("fn two()", "z")], OLD),
        "change 1 (`a.rs`): the texts of edit 1 and edit 3 overlap in the file; make one edit of them"
    );
    // What an edit writes is not found by another one.
    assert!(refused(&[("fn one", "fn new"), ("fn new", "x")], OLD).contains("edit 2 (`fn new`): its old text is not"));
}

#[test]
fn edits_are_of_the_text_that_was_shown() {
    let refused = |key: &str, to: Json| {
        let mut change = modify(&[("fn one", "fn three")]);
        change[key] = to;
        with(change, OLD).unwrap_err().to_string()
    };
    let other = Digest::of_bytes(b"other").hex();
    assert!(refused("old_sha256", other.into()).contains("but the file in the context has"));
    assert!(refused("file_path", "c".into()).contains("not in the approved context"));
    assert!(refused("file_path", "b".into()).contains("the file is not text"));
    assert!(refused("operation", "CREATE".into()).contains("CREATE has edits; write MODIFY"));
    assert!(refused("operation", "DELETE".into()).contains("DELETE has edits"));
    assert!(refused("content", "x".into()).contains("both the content and `edits` are given"));
    // Without the files, there is nothing to edit.
    let changes = value!({"summary": "s", "changes": [modify(&[("fn one", "x")])]});
    assert!(json::of_value(&changes).unwrap_err().to_string().contains("not in the approved context"));
}

const TEXT: &str = "# C\n\n**Summary:** s\n**Changes:** 1\n\n---\n\n```paws-change\noperation: MODIFY\nfile_path: a.rs\nedits: 2\n```\n\n```search\n    one();\n    one();\n```\n\n```replace\n    one();\n```\n\n````search\nfn one() {}\n\n````\n\n````replace\n```\n````\n";

#[test]
fn the_text_form_has_pairs_of_fences() {
    let read = |text: &str| dogs::draft(text.as_bytes()).and_then(|draft| draft.on(&files(OLD)));
    assert_eq!(content(&read(TEXT).unwrap()), "```\nfn two() {\n    one();\n}\r\nlast");
    let refused = |from: &str, to: &str| read(&TEXT.replacen(from, to, 1)).unwrap_err().to_string();
    let at = "line 8: change 1 (`a.rs`): ";
    assert_eq!(
        refused("one();\n    one();\n", "one();\n"),
        format!(
            "{at}edit 1 (`one();`): its old text is in the file 2 times; quote more of the lines around it, so that it is there exactly once"
        )
    );
    assert!(refused("edits: 2", "edits: 3").contains("unexpected end of text: expected the fence `search` of edit 3"));
    assert!(refused("edits: 2", "edits: 1").starts_with("line 23: expected the start of a change"));
    assert!(refused("edits: 2", "edits: 0").contains("`edits` is 0"));
    assert!(refused("edits: 2", "edits: two").contains("invalid `edits`: `two`; write how many"));
    assert!(refused("edits: 2", "edits: 2\nencoding: base64").contains("the change is edits, but `encoding`"));
    assert!(refused("operation: MODIFY", "operation: CREATE").contains("only MODIFY has edits"));
    assert!(
        refused("```replace", "```search").contains("expected the fence `replace` of edit 1, found a fence `search`")
    );
    assert!(dogs::read(TEXT.as_bytes()).unwrap_err().to_string().contains("not in the approved context"));
    // Text between the fences is taken from a model.
    let prose = TEXT.replacen("```replace", "becomes\n\n```replace", 1);
    assert!(read(&prose).is_err());
    let (draft, assumed) = dogs::draft_leniently(prose.as_bytes()).unwrap();
    assert!(draft.on(&files(OLD)).is_ok());
    assert_eq!(assumed.len(), 1);
}

proptest! {
    /// An edit is taken exactly if its text is there once, and replaces nothing else.
    #[test]
    fn one_edit_is_one_replacement(old in "[ab\nä]{0,12}", search in "[ab\nä]{1,4}", replace in "[abc]{0,3}") {
        let count = (0..old.len()).filter(|at| old.get(*at..).is_some_and(|rest| rest.starts_with(&search))).count();
        match with(modify(&[(&search, &replace)]), &old) {
            Ok(made) => {
                prop_assert_eq!(count, 1);
                prop_assert_eq!(content(&made), old.replacen(&search, &replace, 1));
            }
            Err(_) => prop_assert!(count != 1),
        }
    }
}
