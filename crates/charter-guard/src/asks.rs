//! The permits that a call needs, each with the narrowest scope that covers it: what an agent asks
//! a person for.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::data::{Description, MAX_TEXT_BYTES, PathFact, Usage, hex};

/// The scope that covers everything of a kind.
const ANY: &str = "*";
/// The scope of a permit for the secrets of the environment.
const ENVIRONMENT: &str = "environment";

/// Lists the permits of a call, in the order of the charter `coder`.
pub(crate) fn asks(of: &Description, digest: &str) -> Vec<Value> {
    let does = &of.does;
    let scopes = [
        ("push", does.push.then(|| push(&of.pushes))),
        ("network", does.contact.then(|| host(&of.contacts))),
        ("delete", does.delete_outside.then(|| folder(of, |path| path.usage == Usage::Delete && !path.inside))),
        ("write", does.write_outside.then(|| folder(of, |path| path.usage == Usage::Write && !path.inside))),
        ("secret", does.secret.then(|| secret(of))),
        ("protected", does.protected.then(|| folder(of, |path| path.protected && path.usage.changes()))),
        ("opaque", does.opaque.then(|| digest.to_owned())),
        ("tool", does.other.then(|| short(of.call.tool.clone()))),
    ];
    scopes.into_iter().filter_map(|(kind, scope)| scope.map(|scope| json!({"kind": kind, "scope": scope}))).collect()
}

/// The text, or its digest if it is longer than what a description keeps.
fn short(text: String) -> String {
    match text.len() > MAX_TEXT_BYTES {
        true => format!("sha256:{}", hex(&Sha256::digest(text.as_bytes()))),
        false => text,
    }
}

/// All pushes of a call, as they are called.
fn push(pushes: &[Option<String>]) -> String {
    let known: Option<Vec<&str>> = pushes.iter().map(Option::as_deref).collect();
    known.filter(|known| !known.is_empty()).map_or_else(|| ANY.to_owned(), |known| short(known.join("; ")))
}

fn host(hosts: &[String]) -> String {
    match hosts {
        [host] => host.clone(),
        _ => ANY.to_owned(),
    }
}

/// The environment and files have no scope in common.
fn secret(of: &Description) -> String {
    let is_meant = |path: &PathFact| path.secret && path.usage != Usage::Search;
    match (of.does.environment, of.paths.iter().any(is_meant)) {
        (true, false) => ENVIRONMENT.to_owned(),
        (true, true) => ANY.to_owned(),
        (false, _) => folder(of, is_meant),
    }
}

/// The file that is meant, or the folder that all of them are in.
fn folder(of: &Description, is_meant: impl Fn(&PathFact) -> bool) -> String {
    let mut common: Option<PathBuf> = None;
    for fact in of.paths.iter().filter(|path| is_meant(path)) {
        let Some(resolved) = &fact.resolved else { return ANY.to_owned() };
        let path = Path::new(resolved);
        common = Some(match common {
            None => path.to_owned(),
            Some(common) => {
                let same = common.components().zip(path.components()).take_while(|(one, two)| one == two);
                same.map(|(one, _)| one).collect()
            }
        });
    }
    let text = common.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
    // A longer path is cut off in the description, and what is below `/` is everything.
    match text.len() > 1 && text.len() < MAX_TEXT_BYTES {
        true => text,
        false => ANY.to_owned(),
    }
}
