//! Principals of an `OpenID` provider: a bearer token that it has signed names a person.

mod fetch;
mod keys;
mod token;

use std::sync::{Arc, Mutex, PoisonError};

use charter_kernel::{Auth, PrincipalKind, Timestamp};
use tokio::sync::watch;

use crate::identity::{Caller, Directory, Token};
use crate::options::OidcOptions;
use fetch::{Fetcher, check_issuer};
use keys::{Keys, PublicKey};
use token::Head;
pub(crate) use token::is_token;

/// Keys are fetched at most once in this time, whatever tokens arrive.
const PAUSE_MS: i64 = 60_000;
/// Keys of this age are fetched again, so that one that the provider has withdrawn ends.
const OLD_MS: i64 = 3_600_000;
/// Keys of this age are not used, even if they cannot be fetched.
const TOO_OLD_MS: i64 = 24 * 3_600_000;

/// Why a token is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("the token is not accepted: {0}")]
    Token(String),
    /// The token may be right; try again later.
    #[error("the token cannot be checked: {0}")]
    Provider(String),
}

fn refused<T>(why: impl Into<String>) -> Result<T, Refused> {
    Err(Refused::Token(why.into()))
}

#[derive(Debug, Default)]
struct State {
    keys: Arc<Keys>,
    /// When the keys were fetched.
    fetched: Option<Timestamp>,
    /// When fetching began for the last time.
    tried: Option<Timestamp>,
    fetching: bool,
    /// Why the last attempt failed.
    error: Option<String>,
}

/// The provider of a server.
#[derive(Debug)]
pub(crate) struct Provider {
    options: OidcOptions,
    fetcher: Fetcher,
    state: Mutex<State>,
    /// Number of attempts to fetch the keys that are over.
    attempts: watch::Sender<u64>,
}

/// Whether less than a time has passed; a clock that was set back starts again.
fn within(since: Option<Timestamp>, now: Timestamp, ms: i64) -> bool {
    since.is_some_and(|since| (0..ms).contains(&now.since(since).0))
}

impl Provider {
    /// # Errors
    /// The address of the issuer cannot be used.
    pub(crate) fn new(options: OidcOptions) -> Result<Arc<Provider>, String> {
        check_issuer(&options.issuer)?;
        let fetcher = Fetcher::new(&options.issuer);
        Ok(Arc::new(Provider { options, fetcher, state: Mutex::default(), attempts: watch::Sender::new(0) }))
    }

    /// Finds out who a token names.
    pub(crate) async fn caller(
        self: &Arc<Self>,
        text: &str,
        directory: &Directory,
        now: Timestamp,
    ) -> Result<Caller, Refused> {
        let head = Head::read(text)?;
        let key = self.key(&head, now).await?;
        let claims = head.verified(&key)?;
        let who = claims.check(&self.options, now)?;
        let kind = if who.is_program { PrincipalKind::Service } else { PrincipalKind::Person };
        let token = Token { until: who.until, claimed: who.grants };
        let grants = directory.granted_by_token(&who.id, kind, &token, now);
        Ok(Caller { id: who.id, kind, auth: Auth::Oidc, grants: Some(grants), key: None, token: Some(token) })
    }

    /// Finds the key of a token; fetches the keys if it is not among those that are known.
    async fn key(self: &Arc<Self>, head: &Head<'_>, now: Timestamp) -> Result<PublicKey, Refused> {
        let mut attempts = self.attempts.subscribe();
        // Once with what is known, once after the attempt that is underway, once after an own one.
        for _ in 0..3 {
            attempts.borrow_and_update();
            {
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                let usable = within(state.fetched, now, TOO_OLD_MS);
                let found = if usable { state.keys.find(head.kid(), head.algorithm())? } else { None };
                let may_fetch = !state.fetching && !within(state.tried, now, PAUSE_MS);
                let is_old = !within(state.fetched, now, OLD_MS);
                if may_fetch && (is_old || found.is_none()) {
                    state.tried = Some(now);
                    state.fetching = true;
                    self.fetch(now);
                }
                match found {
                    Some(found) => return Ok(found),
                    None if state.fetching => {}
                    None if usable => return refused("the provider has no such key"),
                    None => {
                        return Err(Refused::Provider(state.error.clone().unwrap_or_else(|| "no keys".to_owned())));
                    }
                }
            }
            if attempts.changed().await.is_err() {
                break;
            }
        }
        Err(Refused::Provider("its keys change all the time".to_owned()))
    }

    /// Fetches the keys in a thread that ends by itself: neither a request that is given up nor the
    /// end of the server waits for the provider.
    fn fetch(self: &Arc<Self>, now: Timestamp) {
        let provider = self.clone();
        let work = move || provider.fetched(provider.fetcher.keys(), now);
        if std::thread::Builder::new().name("oidc".into()).spawn(work).is_err() {
            // Not here: the caller has the lock.
            let provider = self.clone();
            tokio::spawn(async move { provider.fetched(Err("this machine has no thread for it".to_owned()), now) });
        }
    }

    fn fetched(&self, result: Result<Keys, String>, now: Timestamp) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.fetching = false;
        match result {
            Ok(keys) => {
                (state.keys, state.fetched, state.error) = (Arc::new(keys), Some(now), None);
            }
            Err(error) => state.error = Some(error),
        }
        drop(state);
        self.attempts.send_modify(|attempts| *attempts = attempts.wrapping_add(1));
    }
}
