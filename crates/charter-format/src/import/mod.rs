//! Reads statecharts in other languages into the core form: SCXML documents and XState configs. They are translated, not emulated
//! (02-architecture, rule 5); the result has `strict: false`, because those languages ignore what a charter refuses.
//!
//! ```
//! use charter_format::import;
//!
//! let source = r#"<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0" datamodel="cel">
//!   <state id="off"><transition event="push" target="on"/></state>
//!   <state id="on"/>
//! </scxml>"#;
//! let document = import::scxml(source, "lamp.scxml", &import::no_files)?;
//! assert_eq!(document.definition.id, "lamp");
//! assert!(charter_kernel::Machine::compile(document.definition).is_ok());
//! # Ok::<(), charter_format::Diagnostics>(())
//! ```

pub(crate) mod scxml;
mod xstate;

pub use scxml::scxml;
pub(crate) use xstate::config as xstate_config;
pub use xstate::xstate;

/// Gives the text of a file that a document names, or says why there is none. The library reads no files by itself.
pub type Resolver<'r> = dyn Fn(&str) -> Result<String, String> + 'r;

/// A resolver for documents that stand alone.
///
/// # Errors
/// Always.
pub fn no_files(_: &str) -> Result<String, String> {
    Err("a document from outside may not name files".to_owned())
}

/// The id of a charter made from a title or a file name: `[a-z][a-z0-9-]*`.
fn charter_id(text: &str) -> String {
    let stem = text.rsplit(['/', '\\']).next().unwrap_or(text);
    let stem = stem.split('.').next().unwrap_or(stem);
    let mut id = String::new();
    for c in stem.chars().take(64) {
        match c.to_ascii_lowercase() {
            c @ ('a'..='z' | '0'..='9') => id.push(c),
            _ if id.is_empty() || id.ends_with('-') => {}
            _ => id.push('-'),
        }
    }
    let id = id.trim_matches('-');
    if id.starts_with(|c: char| c.is_ascii_lowercase()) {
        id.to_owned()
    } else {
        format!("chart-{id}").trim_end_matches('-').to_owned()
    }
}
