//! The options of `charter serve` in a file. What the command line says wins.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::Args;
use crate::io::Failure;
use crate::options_file;

/// The file: the names of the options are its keys.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Config {
    listen: Option<SocketAddr>,
    charters: Option<PathBuf>,
    #[serde(default)]
    offer: Vec<String>,
    public_url: Option<String>,
    oidc_issuer: Option<String>,
    oidc_client: Option<String>,
    oidc_id_claim: Option<String>,
    oidc_roles_claim: Option<String>,
    #[serde(default)]
    origin: Vec<String>,
    db: Option<PathBuf>,
    #[serde(default)]
    private_hooks: bool,
    model: Option<String>,
    model_url: Option<String>,
    models: Option<PathBuf>,
    record_missing: Option<PathBuf>,
    record_models: Option<PathBuf>,
    replay_models: Option<PathBuf>,
    #[serde(default)]
    accept_clock: bool,
    #[serde(default)]
    allow_insecure: bool,
}

/// The keys of the file, each the name of an option.
#[cfg(test)]
const KEYS: [&str; 19] = [
    "accept-clock",
    "allow-insecure",
    "charters",
    "db",
    "listen",
    "model",
    "model-url",
    "models",
    "offer",
    "oidc-client",
    "oidc-id-claim",
    "oidc-issuer",
    "oidc-roles-claim",
    "origin",
    "private-hooks",
    "public-url",
    "record-missing",
    "record-models",
    "replay-models",
];

/// Adds to the options those of the file that they name.
///
/// # Errors
/// The file cannot be read, is not TOML, or has a key or a value that is no option.
pub(super) fn complete(args: &Args) -> Result<Args, Failure> {
    let mut args = args.clone();
    let Some(path) = &args.config else { return Ok(args) };
    let Config {
        listen,
        charters,
        offer,
        public_url,
        oidc_issuer,
        oidc_client,
        oidc_id_claim,
        oidc_roles_claim,
        origin,
        db,
        private_hooks,
        model,
        model_url,
        models,
        record_missing,
        record_models,
        replay_models,
        accept_clock,
        allow_insecure,
    } = read(path)?;
    // Paths in the file are relative to its folder, wherever the server is started.
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    let placed = |path: Option<PathBuf>| path.map(|path| folder.join(path));
    args.listen = args.listen.or(listen);
    args.charters = args.charters.or_else(|| placed(charters));
    args.public_url = args.public_url.or(public_url);
    args.oidc_issuer = args.oidc_issuer.or(oidc_issuer);
    args.oidc_client = args.oidc_client.or(oidc_client);
    args.oidc_id_claim = args.oidc_id_claim.or(oidc_id_claim);
    args.oidc_roles_claim = args.oidc_roles_claim.or(oidc_roles_claim);
    args.db = args.db.or_else(|| placed(db));
    args.private_hooks |= private_hooks;
    if args.offer.is_empty() {
        args.offer = offer;
    }
    if args.origins.is_empty() {
        args.origins = origin;
    }
    // Options about models that exclude each other are not mixed.
    if !args.models.is_given() {
        args.models.model = model;
        args.models.model_url = model_url;
        args.models.models = placed(models);
        args.models.record_missing = placed(record_missing);
        args.models.record_models = placed(record_models);
        args.models.replay_models = placed(replay_models);
    }
    args.models.accept_clock |= accept_clock;
    args.models.allow_insecure |= allow_insecure;
    Ok(args)
}

fn read(path: &Path) -> Result<Config, Failure> {
    let config: Config = options_file::read(path)?;
    if config.models.is_some() && config.model_url.is_some() {
        let name = path.display();
        return Err(Failure::new(format!("`{name}`: `models` excludes `model-url`: give the provider an `address`")));
    }
    if config.record_missing.is_some() && (config.record_models.is_some() || config.replay_models.is_some()) {
        let name = path.display();
        return Err(Failure::new(format!("`{name}`: `record-missing` excludes `record-models` and `replay-models`")));
    }
    if config.replay_models.is_some() && (config.model_url.is_some() || config.record_models.is_some()) {
        let name = path.display();
        return Err(Failure::new(format!("`{name}`: `replay-models` excludes `model-url` and `record-models`")));
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    fn completed(file: &str, args: &[&str]) -> Result<Args, Failure> {
        static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("charter-config-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("charter.toml");
        std::fs::write(&path, file).unwrap();
        let all = ["serve", "--config", path.to_str().unwrap()];
        let done = complete(&Command::parse_from(all.iter().chain(args)).args);
        std::fs::remove_dir_all(&folder).unwrap();
        done
    }

    const FULL: &str = r#"
listen = "127.0.0.1:7200"
charters = "mine"
offer = ["sentinel"]
public-url = "https://charter.example"
origin = ["https://tools.example"]
db = "/data/charter.db"
private-hooks = true
model = "openai:x"
model-url = "http://127.0.0.1:1/v1"
record-models = "cassette.jsonl"
accept-clock = true
"#;

    #[test]
    fn the_file_has_every_option_and_the_command_line_wins() {
        let done = completed(FULL, &[]).unwrap();
        assert_eq!(done.listen, Some("127.0.0.1:7200".parse().unwrap()));
        assert!(done.charters.unwrap().is_absolute(), "relative to the folder of the file");
        assert_eq!((done.offer, done.origins), (vec!["sentinel".to_owned()], vec!["https://tools.example".to_owned()]));
        assert_eq!(done.public_url.as_deref(), Some("https://charter.example"));
        assert_eq!(done.db, Some("/data/charter.db".into()));
        assert!(done.private_hooks && done.models.accept_clock && done.models.model.as_deref() == Some("openai:x"));
        let given = ["--listen", "127.0.0.1:1", "--db", "charter.db", "--offer", "x", "--replay-models", "c"];
        let done = completed(FULL, &given).unwrap();
        assert_eq!(done.listen, Some("127.0.0.1:1".parse().unwrap()));
        assert_eq!((done.db, done.offer), (Some("charter.db".into()), vec!["x".to_owned()]));
        assert_eq!((done.models.model, done.models.replay_models), (None, Some("c".into())));
        // Several providers instead of one model.
        let several =
            FULL.replace("model = \"openai:x\"\nmodel-url = \"http://127.0.0.1:1/v1\"", "models = \"m.toml\"");
        let models = completed(&several, &[]).unwrap().models;
        assert!(models.models.unwrap().is_absolute() && models.record_models.is_some(), "relative to the folder");
        let models = completed(&several, &["--model", "openai:y"]).unwrap().models;
        assert_eq!((models.models, models.model.as_deref()), (None, Some("openai:y")));
    }

    #[test]
    fn the_keys_are_all_options() {
        let command = <Command as clap::CommandFactory>::command();
        let mut options: Vec<&str> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
        options.retain(|option| !["config", "help"].contains(option));
        options.sort_unstable();
        assert_eq!(options, KEYS);
        let missing = completed("nothing = 1", &[]).unwrap_err().to_string();
        assert!(missing.contains("unknown key `nothing`"), "{missing}");
    }

    #[test]
    fn an_error_has_its_place_in_the_file() {
        let shown = |file: &str| {
            let mut text = Vec::new();
            completed(file, &[]).unwrap_err().show(&mut text, false).unwrap();
            String::from_utf8(text).unwrap()
        };
        let unknown = shown("# one\nlisten = \"127.0.0.1:1\"\nlistn = 3\n");
        for part in ["unknown key `listn`", "charter.toml:3:1", "listn = 3", "^^^^^", "did you mean `listen`?"] {
            assert!(unknown.contains(part), "{part}: {unknown}");
        }
        for (file, part) in [
            ("listen = \"here\"", "socket address"),
            ("offer = \"sentinel\"", "expected a sequence"),
            ("db = ", "charter.toml:1:"),
            ("db = \"a\"\ndb = \"b\"", "duplicate key"),
            ("replay-models = \"c\"\nmodel-url = \"m\"", "`replay-models` excludes `model-url`"),
            ("models = \"c\"\nmodel-url = \"m\"", "`models` excludes `model-url`"),
        ] {
            let text = shown(file);
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
