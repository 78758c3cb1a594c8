//! The executors of this program.

use charter_actors::{Executors, Network, Secret};
use charter_models::{HttpTransport, Model, Models as ModelExecutor};

/// The variable with the key of the model.
const KEY: &str = "CHARTER_MODEL_KEY";

/// Which model answers actors of kind `model`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Models {
    /// The model that answers, with its key in the variable CHARTER_MODEL_KEY [default: the offline
    /// rules of the charter]
    #[arg(long, value_name = "PROVIDER:NAME")]
    model: Option<String>,
    /// Address of the model
    #[arg(long, value_name = "URL", requires = "model")]
    model_url: Option<String>,
}

impl Models {
    /// No model, for programs that call no actor.
    pub(crate) fn none() -> Models {
        Models { model: None, model_url: None }
    }

    pub(crate) fn executors(&self) -> anyhow::Result<Executors> {
        let models = match &self.model {
            None => ModelExecutor::offline(),
            Some(name) => {
                let mut model = Model::parse(name)?;
                if let Some(url) = &self.model_url {
                    model = model.at(url)?;
                }
                match std::env::var(KEY) {
                    Ok(key) => model = model.key(Secret::new(key.trim())),
                    // A server of one's own may need none.
                    Err(_) if self.model_url.is_some() => {}
                    Err(_) => anyhow::bail!("missing API key for `{name}`: set {KEY}"),
                }
                ModelExecutor::asking(model, HttpTransport::new(&Network::default()))
            }
        };
        let mut executors = Executors::new();
        executors.insert("model".into(), std::sync::Arc::new(models));
        Ok(executors)
    }
}
