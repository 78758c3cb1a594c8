//! Selects what answers for actors of kind `model`: a model named on the command line or in the
//! environment, a cassette, or the offline rules of the charter. Only this module reads API keys;
//! they are only ever put into the header of a request.

mod elsewhere;
#[cfg(feature = "models")]
mod file;
mod keys;
mod recording;

use std::path::PathBuf;

use charter_actors::Network;
use charter_models::cassette::Cassette;
use charter_models::{Model, ModelError, Models, Provider, Providers};
use serde_json::{Value as Json, json};

use crate::io::Failure;
use crate::journal::text::quoted;
use crate::load::plain;
use crate::network;
pub use recording::Recording;
use recording::{completing, transport};

/// The default model of each provider, used if only an API key is set.
const DEFAULTS: [(Provider, &str, &str); 3] = [
    (Provider::Anthropic, "ANTHROPIC_API_KEY", "claude-sonnet-4-5"),
    (Provider::OpenAi, "OPENAI_API_KEY", "gpt-5-mini"),
    (Provider::Gemini, "GEMINI_API_KEY", "gemini-2.5-flash"),
];

/// Options of commands that run actors.
#[derive(Debug, Clone, Default, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Model for actors of kind `model`: `openai:NAME`, `anthropic:NAME`, `gemini:NAME`, or
    /// `offline` (rules of the charter) [default: CHARTER_MODEL; else a default model of the
    /// provider whose key is set in ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY; else
    /// offline]
    #[arg(long, value_name = "PROVIDER:NAME")]
    pub model: Option<String>,
    /// Address of the model, e.g. `http://127.0.0.1:11434/v1` (with `openai:NAME`);
    /// CHARTER_MODEL_KEY is sent there, and only there [default: CHARTER_MODEL_URL]
    #[arg(long, value_name = "URL")]
    pub model_url: Option<String>,
    /// Providers that actors may name (`model: PROVIDER:NAME`), in a TOML file: their kinds,
    /// addresses, limits, and the variables with their keys; with `--model`, that model of the file
    /// answers for actors that name none
    #[arg(long, value_name = "FILE", conflicts_with = "model_url")]
    pub models: Option<PathBuf>,
    /// Allow unencrypted `http` to other machines, for models and actors of kind `http`
    #[arg(long)]
    pub allow_insecure: bool,
    /// Record all requests to models and their answers in a new file, a cassette
    #[arg(long, value_name = "FILE", conflicts_with = "replay_models")]
    pub record_models: Option<PathBuf>,
    /// Replay the answers of models from a cassette
    #[arg(long, value_name = "FILE", conflicts_with = "model_url")]
    pub replay_models: Option<PathBuf>,
    /// Replay the answers of models from a cassette, and ask for those that it does not have, which
    /// are added to it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record_models", "replay_models"])]
    pub record_missing: Option<PathBuf>,
    /// Accept the system clock even if it is more than 24 hours behind the newest record of the
    /// journal, or more than 2 years ahead of it
    #[arg(long)]
    pub accept_clock: bool,
}

impl Args {
    /// The options about models, for a suggested command that goes on with the same ones. Cassettes
    /// belong to one command.
    pub(crate) fn options(&self) -> String {
        let file = self.models.as_ref().map(|file| file.display().to_string());
        let all = [("--model", &self.model), ("--model-url", &self.model_url), ("--models", &file)];
        let given = all.iter().filter_map(|(option, value)| Some((option, value.as_ref()?)));
        let mut options: String = given.map(|(option, value)| format!(" {option} {}", quoted(value))).collect();
        if self.allow_insecure {
            options.push_str(" --allow-insecure");
        }
        options
    }
}

/// The selected source of answers.
#[derive(Debug)]
pub struct ModelChoice {
    /// The executor for the kind `model`.
    pub models: Models,
    /// `offline`, `PROVIDER:NAME`, or the file of the cassette.
    pub title: String,
    /// Who answers.
    pub answerer: Answerer,
    /// How clients reach the network.
    pub network: Network,
}

/// Who answers for actors that ask models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answerer {
    /// The model of each actor.
    Models,
    /// A cassette, for all actors.
    Cassette,
    /// The rules of the charter, because somebody chose them.
    Rules,
    /// The rules of the charter, because there is no model.
    NoModel,
}

impl Answerer {
    fn word(self) -> &'static str {
        match self {
            Answerer::Models => "models",
            Answerer::Cassette => "cassette",
            Answerer::Rules => "rules",
            Answerer::NoModel => "no-model",
        }
    }

    /// Whether the rules of the charter answer instead of a model.
    pub(crate) fn is_offline(self) -> bool {
        matches!(self, Answerer::Rules | Answerer::NoModel)
    }
}

impl ModelChoice {
    /// What processes that reach this one are told; see [`told`].
    pub(crate) fn about(&self) -> Json {
        json!({"models": self.title, "answerer": self.answerer.word()})
    }
}

/// Reads [`ModelChoice::about`]: the title, and who answers.
pub(crate) fn told(about: &Json) -> (String, Answerer) {
    let text = |key: &str| about.get(key).and_then(Json::as_str).unwrap_or_default();
    let all = [Answerer::Models, Answerer::Cassette, Answerer::Rules, Answerer::NoModel];
    let answerer = all.into_iter().find(|answerer| answerer.word() == text("answerer"));
    (text("models").to_owned(), answerer.unwrap_or(Answerer::Models))
}

/// Selects the source of answers; `variable` reads the environment.
///
/// # Errors
/// The name or address is invalid, a file cannot be used, or models are not built in.
pub fn choose(
    args: &Args,
    variable: &dyn Fn(&str) -> Option<String>,
    recording: Recording,
) -> Result<ModelChoice, Failure> {
    let variable = |name: &str| variable(name).filter(|v| !v.trim().is_empty());
    let network = network::of(&variable, args.allow_insecure)?;
    if let Some(file) = &args.replay_models {
        let text = std::fs::read_to_string(file)
            .map_err(|e| Failure::new(format!("cannot read `{}`: {}", file.display(), plain(&e))))?;
        let cassette = Cassette::parse(&text).map_err(|e| Failure::new(format!("`{}`: {e}", file.display())))?;
        let model = cassette.model().ok_or_else(|| {
            Failure::with_help(
                format!("`{}` contains no request to a model", file.display()),
                "record one with `--record-models`",
            )
        })?;
        if args.model.is_some() && args.models.is_none() {
            return Err(Failure::with_help(
                "`--model` has no effect with `--replay-models`: the cassette answers",
                "leave `--model` out; only with `--models` it is the default for actors that name no model",
            ));
        }
        let title = format!("{} (from {})", model.title(), file.display());
        let mut providers = Providers { hidden: keys::all(&variable), ..Providers::default() };
        // Nothing is sent, so no key is needed. Those that are set are removed, as when it was
        // recorded.
        let key = |name: &str| Some(variable(name).unwrap_or_default());
        built_in(&mut providers, &key);
        add_file(args, &mut providers, &key)?;
        let named = providers.named.values_mut();
        providers.hidden.extend(named.filter_map(|model| model.key.take()).filter(|key| !key.expose().is_empty()));
        providers.recorded = Some(model);
        return Ok(ModelChoice {
            title,
            models: Models::of(providers, cassette),
            answerer: Answerer::Cassette,
            network,
        });
    }
    let mut providers = Providers { hidden: keys::all(&variable), ..Providers::default() };
    let is_offline = args.model.as_deref() == Some("offline");
    if args.models.is_some() && !is_offline {
        // A file of providers wins over the model that the environment names.
        providers.default = named(None, None, args.allow_insecure, &variable)?;
        built_in(&mut providers, &variable);
        add_file(args, &mut providers, &variable)?;
    } else {
        let name = args.model.clone().or_else(|| variable("CHARTER_MODEL"));
        let url = args.model_url.clone().or_else(|| variable("CHARTER_MODEL_URL"));
        let overrides = name.is_some() || args.model_url.is_some();
        providers.default = named(name, url, args.allow_insecure, &variable)?;
        if !overrides {
            built_in(&mut providers, &variable);
        }
    }
    if providers.default.is_none() && (args.models.is_none() || is_offline) {
        if args.record_models.is_some() || args.record_missing.is_some() {
            let option = if args.record_models.is_some() { "--record-models" } else { "--record-missing" };
            return Err(Failure::with_help(
                format!("`{option}` needs a model: offline, there is nothing to record"),
                "choose a model with `--model`",
            ));
        }
        let is_chosen = is_offline || variable("CHARTER_MODEL").is_some();
        let answerer = if is_chosen { Answerer::Rules } else { Answerer::NoModel };
        return Ok(ModelChoice { models: Models::offline(), title: "offline".into(), answerer, network });
    }
    let title = providers.default.as_ref().map_or_else(|| "of each actor".to_owned(), Model::title);
    let transport = match &args.record_missing {
        Some(file) => completing(&network, file, recording)?,
        None => transport(&network, args.record_models.as_deref(), recording)?,
    };
    Ok(ModelChoice { models: Models::of(providers, transport), title, answerer: Answerer::Models, network })
}

/// What makes a model of a provider usable that nothing makes usable yet.
pub(crate) fn how_to_offer(provider: &str) -> String {
    match DEFAULTS.iter().find(|(known, ..)| known.word() == provider) {
        Some((_, key, _)) => format!("set {key}"),
        None => format!("pass `--models FILE` with the provider `{provider}`"),
    }
}

/// Adds the providers whose keys are set.
fn built_in(providers: &mut Providers, variable: &dyn Fn(&str) -> Option<String>) {
    for (provider, name, _) in DEFAULTS {
        let host = provider.word().to_owned();
        match keys::read(name, variable) {
            Ok(key) => drop(providers.named.insert(host.clone(), Model::provider(&host, provider).key(key))),
            Err(why) => drop(providers.unusable.insert(host, why)),
        }
    }
}

#[cfg(feature = "models")]
fn add_file(args: &Args, providers: &mut Providers, variable: &dyn Fn(&str) -> Option<String>) -> Result<(), Failure> {
    match &args.models {
        Some(file) => file::add(file, args.model.as_deref(), providers, args.allow_insecure, variable),
        None => Ok(()),
    }
}

#[cfg(not(feature = "models"))]
fn add_file(args: &Args, _: &mut Providers, _: &dyn Fn(&str) -> Option<String>) -> Result<(), Failure> {
    match &args.models {
        Some(_) => Err(Failure::new("models are not built into this program")),
        None => Ok(()),
    }
}

/// Returns the model, if one is named or a key is set.
fn named(
    name: Option<String>,
    url: Option<String>,
    allow_insecure: bool,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Model>, Failure> {
    let default = || {
        let (provider, _, model) = DEFAULTS.iter().find(|(_, key, _)| variable(key).is_some())?;
        Some(format!("{}:{model}", provider.word()))
    };
    let name = match name {
        Some(name) if name == "offline" => return Ok(None),
        Some(name) => name,
        None if url.is_some() => {
            return Err(Failure::with_help(
                "missing model name: only the address of the model is set",
                "set the name with `--model openai:NAME` or CHARTER_MODEL",
            ));
        }
        None => match default() {
            Some(name) => name,
            None => return Ok(None),
        },
    };
    let wrong = |why: ModelError| {
        Failure::with_help(why.to_string(), "for example `--model openai:gpt-5-mini`, or `--model offline`")
    };
    let mut model = Model::parse(&name).map_err(wrong)?;
    let key = keys::of(model.provider, url.is_some());
    if let Some(url) = &url {
        model = match allow_insecure {
            true => model.at_insecure(url),
            false => model.at(url),
        }
        .map_err(|why| match why {
            ModelError::Plain(_) => Failure::with_help(why.to_string(), "`--allow-insecure` allows it"),
            why => wrong(why),
        })?;
    }
    match key.filter(|key| variable(key).is_some()) {
        Some(key) => model = model.key(keys::read(key, variable).map_err(Failure::new)?),
        // A server of one's own may need none.
        None if url.is_some() => {}
        None => return Err(keys::missing(&model.title(), key, variable)),
    }
    Ok(Some(model))
}

#[cfg(test)]
mod tests {
    use super::{Args, Recording, choose};

    fn chosen(args: &Args, environment: &[(&str, &str)]) -> Result<(String, String), String> {
        let variable = |name: &str| environment.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        match choose(args, &variable, Recording::Create) {
            Ok(chosen) => Ok((chosen.title, format!("{:?}", chosen.models))),
            Err(failure) => Err(failure.to_string()),
        }
    }

    fn title(args: &Args, environment: &[(&str, &str)]) -> String {
        chosen(args, environment).map_or_else(|e| e, |(title, _)| title)
    }

    fn model(name: &str) -> Args {
        Args { model: Some(name.into()), ..Args::default() }
    }

    #[test]
    fn offline_without_a_key() {
        assert_eq!(title(&Args::default(), &[]), "offline");
        assert_eq!(title(&Args::default(), &[("OPENAI_API_KEY", " ")]), "offline");
        assert_eq!(title(&model("offline"), &[("OPENAI_API_KEY", "sk-1")]), "offline");
    }

    #[cfg(feature = "models")]
    #[test]
    fn a_key_selects_a_default_model() {
        assert_eq!(title(&Args::default(), &[("OPENAI_API_KEY", "sk-1")]), "openai:gpt-5-mini");
        assert_eq!(title(&Args::default(), &[("CHARTER_MODEL", "gemini:g"), ("GEMINI_API_KEY", "k")]), "gemini:g");
        let local = [
            ("CHARTER_MODEL", "openai:llama"),
            ("CHARTER_MODEL_URL", "http://127.0.0.1:9/v1"),
            ("OPENAI_API_KEY", "sk-not-for-others"),
        ];
        let (title, shown) = chosen(&Args::default(), &local).unwrap();
        assert_eq!(title, "openai:llama");
        assert_eq!(shown, "Models(openai:llama at http://127.0.0.1:9/v1)");
    }

    #[cfg(feature = "models")]
    #[test]
    fn each_key_goes_to_its_own_address_only() {
        let away = Args { model_url: Some("http://127.0.0.1:9/v1".into()), ..Args::default() };
        // A key that is read although it goes elsewhere is refused.
        for (name, key) in
            [("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY"), ("gemini", "GEMINI_API_KEY")]
        {
            let named = format!("{name}:m");
            let wrong = "sk-1\nsk-2";
            assert_eq!(title(&model(&named), &[("CHARTER_MODEL_KEY", wrong), (key, "sk-1")]), named);
            assert!(title(&Args::default(), &[("CHARTER_MODEL_KEY", wrong), (key, "sk-1")]).starts_with(name));
            let away = Args { model: Some(named.clone()), ..away.clone() };
            assert_eq!(title(&away, &[("CHARTER_MODEL_KEY", "k"), (key, wrong)]), named);
            let said = title(&model(&named), &[("CHARTER_MODEL_KEY", "k")]);
            assert!(said.starts_with(&format!("missing API key for `{named}`: CHARTER_MODEL_KEY is sent")), "{said}");
        }
    }

    #[test]
    fn errors() {
        assert_eq!(title(&model("openai:x"), &[]), "missing API key for `openai:x`");
        for key in ["sk-1\nsk-2", "sk-\u{1}", "sk-ä"] {
            let said = title(&Args::default(), &[("OPENAI_API_KEY", key)]);
            assert!(said.starts_with("the variable OPENAI_API_KEY with its key has a line break"), "{said}");
            assert!(!said.contains("sk-"), "{said}");
        }
        #[cfg(feature = "models")]
        assert_eq!(title(&Args::default(), &[("OPENAI_API_KEY", " sk-1\r\n")]), "openai:gpt-5-mini");
        assert_eq!(
            title(&Args::default(), &[("CHARTER_MODEL_URL", "http://127.0.0.1:9")]),
            "missing model name: only the address of the model is set"
        );
        let away = Args { model_url: Some("http://models.example/v1".into()), ..model("openai:x") };
        assert_eq!(
            title(&away, &[]),
            "`http://models.example/v1`: `http` is not encrypted and is allowed only to this machine; use `https`"
        );
        let allowed = Args { allow_insecure: true, ..away };
        assert!(!title(&allowed, &[]).contains("not encrypted"));
        assert!(title(&model("acme:x"), &[]).starts_with("unknown provider `acme`"));
        let nothing = Args { replay_models: Some("no such file".into()), ..Args::default() };
        assert!(title(&nothing, &[]).starts_with("cannot read `no such file`"));
        let record = Args { record_models: Some("x".into()), ..Args::default() };
        assert!(title(&record, &[]).starts_with("`--record-models` needs a model"));
    }
}
