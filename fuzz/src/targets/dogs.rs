//! A changeset in its text form.

use charter_workspace::dogs;

pub(crate) fn run(data: &[u8]) {
    match dogs::read(data) {
        Ok(changeset) => {
            let written = dogs::write(&changeset);
            let again = dogs::read(written.as_bytes());
            assert_eq!(again.ok(), Some(changeset), "{written}");
        }
        Err(e) => assert!(!e.to_string().is_empty()),
    }
}
