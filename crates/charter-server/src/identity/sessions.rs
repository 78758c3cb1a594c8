//! Sessions of browsers: a key, or a one-time code, is exchanged for a cookie, and for a token that
//! requests have to repeat if they change something. They are in memory only, so a restart ends
//! them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use charter_kernel::{Digest, Millis, Timestamp};
use tokio::sync::watch;

use super::Caller;
use super::secret::random;

/// A session ends after this time without a request.
pub const IDLE: Millis = Millis(12 * 3_600_000);

/// Maximum number of sessions; the one that was used longest ago ends if there are more.
const MAX_SESSIONS: usize = 10_000;

/// What a browser gets: the cookie's value, which scripts cannot read, and the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tickets {
    /// The value of the cookie.
    pub cookie: String,
    /// The value of the header `X-CSRF-Token` of requests that change something.
    pub csrf: String,
}

/// Who is logged in with a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The principal of this key, as long as it is accepted.
    Key(String),
    /// A principal that has no key, with its roles: the owner of the journal.
    Known(Caller),
}

#[derive(Debug)]
struct Session {
    subject: Subject,
    csrf: String,
    used: Timestamp,
}

/// The open sessions, by the SHA-256 of their cookies.
#[derive(Debug, Default)]
pub struct Sessions {
    open: Mutex<HashMap<Digest, Session>>,
    closed: watch::Sender<()>,
}

/// An open session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// Who is logged in.
    pub subject: Subject,
    /// Its token.
    pub csrf: String,
}

fn name(cookie: &str) -> Digest {
    Digest::of_bytes(cookie.as_bytes())
}

impl Sessions {
    /// Opens a session.
    ///
    /// # Errors
    /// The operating system has no random numbers.
    pub fn open(&self, subject: Subject, now: Timestamp) -> Result<Tickets, getrandom::Error> {
        let tickets = Tickets { cookie: random()?, csrf: random()? };
        let session = Session { subject, csrf: tickets.csrf.clone(), used: now };
        let mut sessions = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= MAX_SESSIONS {
            sessions.retain(|_, s| now.since(s.used) < IDLE);
        }
        if sessions.len() >= MAX_SESSIONS
            && let Some(oldest) = sessions.iter().min_by_key(|(_, s)| s.used).map(|(name, _)| *name)
        {
            sessions.remove(&oldest);
        }
        sessions.insert(name(&tickets.cookie), session);
        Ok(tickets)
    }

    /// Returns the session of a cookie, which is used now; `None` if it has ended.
    #[must_use]
    pub fn find(&self, cookie: &str, now: Timestamp) -> Option<Open> {
        let mut sessions = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let name = name(cookie);
        let session = sessions.get_mut(&name)?;
        if now.since(session.used) >= IDLE {
            sessions.remove(&name);
            return None;
        }
        session.used = session.used.max(now);
        Some(Open { subject: session.subject.clone(), csrf: session.csrf.clone() })
    }

    /// Ends the session of a cookie.
    pub fn close(&self, cookie: &str) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&name(cookie));
        self.closed.send_replace(());
    }

    /// Tells when a session is closed, from now on.
    pub(crate) fn closings(&self) -> watch::Receiver<()> {
        self.closed.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_when_it_is_closed_or_idle() {
        let sessions = Sessions::default();
        let tickets = sessions.open(Subject::Key("k1".into()), Timestamp(0)).unwrap();
        let open = Open { subject: Subject::Key("k1".into()), csrf: tickets.csrf.clone() };
        assert_eq!(sessions.find(&tickets.cookie, Timestamp(IDLE.0 - 1)), Some(open.clone()));
        assert_eq!(sessions.find(&tickets.cookie, Timestamp(2 * IDLE.0 - 2)), Some(open));
        assert_eq!(sessions.find(&tickets.csrf, Timestamp(0)), None, "the token is no cookie");
        assert_eq!(sessions.find(&tickets.cookie, Timestamp(4 * IDLE.0)), None);
        assert_eq!(sessions.find(&tickets.cookie, Timestamp(0)), None, "an ended session stays ended");
        let tickets = sessions.open(Subject::Key("k1".into()), Timestamp(0)).unwrap();
        sessions.close(&tickets.cookie);
        assert_eq!(sessions.find(&tickets.cookie, Timestamp(0)), None);
    }

    #[test]
    fn there_are_not_more_sessions_than_the_limit() {
        let sessions = Sessions::default();
        let first = sessions.open(Subject::Key("k".into()), Timestamp(0)).unwrap();
        let mut last = first.clone();
        for i in 1..=MAX_SESSIONS {
            last = sessions.open(Subject::Key("k".into()), Timestamp(i64::try_from(i).unwrap())).unwrap();
        }
        assert_eq!(sessions.open.lock().unwrap().len(), MAX_SESSIONS);
        assert_eq!(sessions.find(&first.cookie, Timestamp(1)), None);
        assert!(sessions.find(&last.cookie, Timestamp(1)).is_some());
    }
}
