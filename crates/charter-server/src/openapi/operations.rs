//! The operations of the API, in the order of the documentation.

/// A parameter of a query or a header.
pub(crate) struct Param {
    pub(crate) name: &'static str,
    /// `query` or `header`.
    pub(crate) place: &'static str,
    /// `string`, `integer` or `boolean`.
    pub(crate) kind: &'static str,
    pub(crate) text: &'static str,
}

/// An operation.
pub(crate) struct Operation {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    /// The name of the function in generated clients.
    pub(crate) id: &'static str,
    pub(crate) tag: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) params: &'static [Param],
    /// The schema of the request's body.
    pub(crate) body: Option<&'static str>,
    /// Status, media type and schema of the answer.
    pub(crate) answer: (&'static str, &'static str, &'static str),
    /// What the answer is.
    pub(crate) gives: &'static str,
    pub(crate) problems: &'static [&'static str],
    /// Whether it needs no authentication.
    pub(crate) open: bool,
}

const JSON: &str = "application/json";
const SSE: &str = "text/event-stream";
const READ: &[&str] = &["400", "401", "404"];
const WRITE: &[&str] = &["400", "401", "403", "404", "409", "413", "422", "429", "503"];
const ADMIN: &[&str] = &["400", "401", "403"];

const KEY: Param = Param {
    name: "Idempotency-Key",
    place: "header",
    kind: "string",
    text: "The id of the event: sending it again gives the first answer, and changes nothing",
};
const AFTER_RUN: Param =
    Param { name: "after", place: "query", kind: "string", text: "The last run of the page before" };
const AFTER_SEQ: Param =
    Param { name: "after", place: "query", kind: "integer", text: "The number of the last record that the client has" };
const AFTER_POSITION: Param = Param {
    name: "after",
    place: "query",
    kind: "integer",
    text: "A position of the journal; without it, from now on",
};
const LIMIT: Param = Param { name: "limit", place: "query", kind: "integer", text: "At most this many, up to 1000" };
const RESUME: Param = Param {
    name: "Last-Event-ID",
    place: "header",
    kind: "string",
    text: "The `id` of the last event that was received",
};
const MATCH: Param = Param {
    name: "If-Match",
    place: "header",
    kind: "string",
    text: "The number of the last record that the sender has seen; if the run has changed since, the event is refused as `stale`",
};

const fn get(path: &'static str, id: &'static str, tag: &'static str, schema: &'static str) -> Operation {
    Operation {
        method: "get",
        path,
        id,
        tag,
        summary: "",
        params: &[],
        body: None,
        answer: ("200", JSON, schema),
        gives: "",
        problems: READ,
        open: false,
    }
}

const fn post(
    path: &'static str,
    id: &'static str,
    tag: &'static str,
    body: &'static str,
    answer: (&'static str, &'static str),
) -> Operation {
    Operation {
        method: "post",
        path,
        id,
        tag,
        summary: "",
        params: &[],
        body: Some(body),
        answer: (answer.0, JSON, answer.1),
        gives: "",
        problems: WRITE,
        open: false,
    }
}

/// A request without a body.
const fn retry(
    path: &'static str,
    id: &'static str,
    tag: &'static str,
    answer: (&'static str, &'static str),
) -> Operation {
    Operation { body: None, ..post(path, id, tag, "", answer) }
}

impl Operation {
    const fn says(self, summary: &'static str, gives: &'static str) -> Operation {
        Operation { summary, gives, ..self }
    }

    const fn params(self, params: &'static [Param]) -> Operation {
        Operation { params, ..self }
    }

    const fn problems(self, problems: &'static [&'static str]) -> Operation {
        Operation { problems, ..self }
    }

    const fn media(self, media: &'static str) -> Operation {
        Operation { answer: (self.answer.0, media, self.answer.2), ..self }
    }

    const fn open(self) -> Operation {
        Operation { open: true, ..self }
    }

    const fn delete(self) -> Operation {
        Operation { method: "delete", answer: ("204", JSON, ""), ..self }
    }
}

/// All operations.
pub(crate) const OPERATIONS: &[Operation] = &[
    post("/v1/runs", "startRun", "runs", "StartRun", ("201", "Record"))
        .says("Start a run", "Record 0 of the run; 200 with it if the same start was recorded earlier")
        .params(&[KEY]),
    get("/v1/runs", "listRuns", "look", "RunPage")
        .says("List the runs that the caller may see", "A page of runs")
        .params(&[
            Param {
                name: "charter",
                place: "query",
                kind: "string",
                text: "Only runs of this charter: its id, or a digest",
            },
            Param {
                name: "status",
                place: "query",
                kind: "string",
                text: "`active`, `paused`, `done`, `failed` or `cancelled`",
            },
            Param { name: "stuck", place: "query", kind: "boolean", text: "Only runs that can, or cannot, go on" },
            Param {
                name: "state",
                place: "query",
                kind: "boolean",
                text: "With the active states of each run, and whether it is stuck; at most 100 runs then",
            },
            AFTER_RUN,
            LIMIT,
        ]),
    get("/v1/runs/{run}", "getRun", "look", "Run").says("The current state of a run", "The state, with `ETag: SEQ`"),
    post("/v1/runs/{run}/events", "sendEvent", "runs", "Event", ("200", "Record"))
        .says("Send an event", "The record of the accepted event")
        .params(&[KEY, MATCH]),
    post("/v1/runs/{run}/answers", "answerTask", "runs", "TaskAnswer", ("200", "Record"))
        .says("Answer or decline a task of a person", "The record of the answer"),
    get("/v1/runs/{run}/legal", "getLegal", "look", "LegalEvents")
        .says("What the caller may send now", "The events, and what each needs"),
    get("/v1/runs/{run}/records", "listRecords", "look", "RecordPage")
        .says("The records of a run", "A page of records")
        .params(&[AFTER_SEQ, LIMIT]),
    get("/v1/runs/{run}/stream", "streamRun", "streams", "string")
        .says("Follow a run", "`record` events, whose `id` is the number of the record; `news` events without one")
        .params(&[AFTER_SEQ, RESUME])
        .media(SSE),
    get("/v1/runs/{run}/at/{seq}", "getRunAt", "look", "Run")
        .says("A run as it was after one of its records", "The state"),
    get("/v1/runs/{run}/explain/{seq}", "explainRecord", "look", "Explained")
        .says("Why an event was accepted or refused", "The reason, in words and in fields"),
    get("/v1/runs/{run}/graph.svg", "drawRun", "look", "string")
        .says("The chart of a run, with its active states", "A picture")
        .params(&[Param { name: "at", place: "query", kind: "integer", text: "As it was after this record" }])
        .media("image/svg+xml"),
    get("/v1/runs/{run}/blobs/{digest}", "getContent", "look", "binary")
        .says(
            "A file that the data of a run name by its SHA-256, such as those of a changeset",
            "Its bytes, up to 4 MiB",
        )
        .params(&[Param { name: "at", place: "query", kind: "integer", text: "As the data were after this record" }])
        .media("application/octet-stream")
        .problems(&["400", "401", "404", "413"]),
    post("/v1/runs/{run}/fork", "forkRun", "runs", "ForkRun", ("201", "Fork"))
        .says("Create a run that shares the first records of another", "The new run, with `ETag: SEQ`"),
    post("/v1/runs/{run}/hook/{client}", "decideCall", "runs", "AnyObject", ("200", "AnyObject"))
        .says(
            "Decide what the agent of a client may do (hooks of type `http`)",
            "The decision in the shape of the client, also if the call cannot be decided: it is denied then",
        )
        .problems(&["400", "401"]),
    get("/v1/stream", "streamJournal", "streams", "string")
        .says(
            "Follow all runs that the caller may see",
            "A `begin` event, then `record` events, whose `id` is their position in the journal; `inbox` events tell that requests were marked",
        )
        .params(&[AFTER_POSITION, RESUME])
        .media(SSE),
    get("/v1/inbox", "listRequests", "look", "Inbox")
        .says("What waits for the caller in all runs: decisions, tasks", "The requests, the earliest deadline first")
        .params(&[
            Param { name: "run", place: "query", kind: "string", text: "Only what waits in this run" },
            Param {
                name: "expired_since",
                place: "query",
                kind: "string",
                text: "Instead: what expired since this time (RFC 3339) without an answer, the last first",
            },
        ]),
    post("/v1/inbox", "markRequest", "look", "Mark", ("200", "Marked"))
        .says(
            "Note that a request of the inbox was seen, put it off, or assign it: this decides nothing",
            "The marks of the request",
        )
        .problems(&["400", "401", "404", "422"]),
    get("/v1/tasks", "listTasks", "look", "TaskPage")
        .says("What waits for the caller", "The tasks that the caller may answer"),
    get("/v1/charters", "listCharters", "charters", "CharterPage")
        .says("The charters that runs can be started of", "The charters")
        .problems(&["401"]),
    post("/v1/charters", "addCharter", "charters", "AddCharter", ("201", "CharterSummary"))
        .says("Add a charter, or a new version of one (role `admin`)", "The charter"),
    get("/v1/charters/{id}", "getCharter", "charters", "Charter")
        .says("A charter", "Its text, events, roles and core form"),
    get("/v1/charters/{id}/graph.svg", "drawCharter", "charters", "string")
        .says("The chart of a charter", "A picture")
        .media("image/svg+xml"),
    get("/v1/me", "getMe", "identity", "Me").says("Who the caller is", "Id, kind, roles").problems(&["401"]),
    post("/v1/session", "openSession", "identity", "OpenSession", ("201", "Me"))
        .says(
            "Exchange a key, or the code of a login link, for a session",
            "A cookie, and the token for requests that change something",
        )
        .problems(&["400", "401", "429"])
        .open(),
    get("/v1/session", "closeSession", "identity", "")
        .says("End the session", "The session has ended")
        .problems(&["401", "403"])
        .delete(),
    get("/v1/keys", "listKeys", "identity", "KeyPage")
        .says("The keys (role `admin`)", "The keys, without secrets")
        .problems(ADMIN),
    post("/v1/keys", "addKey", "identity", "AddKey", ("201", "NewKey"))
        .says("Add a key (role `admin`)", "The secret, this once")
        .problems(&["400", "401", "403", "409", "422"]),
    get("/v1/keys/{key}", "revokeKey", "identity", "")
        .says("Revoke a key (role `admin`)", "The key is not accepted any more")
        .problems(&["401", "403", "404", "409"])
        .delete(),
    get("/v1/hooks", "listHooks", "hooks", "HookPage")
        .says("The webhooks, and how far each one is (role `admin`)", "The webhooks, without secrets")
        .problems(ADMIN),
    post("/v1/hooks", "addHook", "hooks", "AddHook", ("201", "NewHook"))
        .says("Add a webhook (role `admin`)", "The secret that signs its messages, this once")
        .problems(&["400", "401", "403", "409", "422"]),
    get("/v1/hooks/{hook}", "removeHook", "hooks", "")
        .says("Remove a webhook (role `admin`)", "Nothing is sent any more")
        .problems(&["401", "403", "404"])
        .delete(),
    get("/v1/hooks/{hook}/dead", "listDeadLetters", "hooks", "DeadLetterPage")
        .says("The messages of a webhook that could not be delivered (role `admin`)", "The dead letters, oldest first")
        .problems(&["401", "403", "404"]),
    retry("/v1/hooks/{hook}/retry", "retryHook", "hooks", ("202", "HookName"))
        .says("Try again now, the dead letters included (role `admin`)", "The server tries")
        .problems(&["401", "403", "404"]),
    post("/v1/check", "checkCharter", "tools", "CheckCharter", ("200", "Report"))
        .says("Check a charter", "The findings")
        .problems(&["400", "401", "413", "422", "429"]),
    post("/v1/step", "stepCharter", "tools", "StepCharter", ("200", "StepLines"))
        .says("Step a charter through events, without a run", "A line for the start and for each event")
        .problems(&["400", "401", "413", "422", "429"]),
    get("/v1/journal", "getJournal", "server", "Journal")
        .says("The head and the size of the journal (role `admin` or `reader`)", "The journal")
        .problems(&["401", "403"]),
    post("/v1/sql", "queryJournal", "server", "Query", ("200", "Rows"))
        .says("Query the journal with SQL (role `admin`)", "The first rows; [the tables](sql.md)")
        .problems(&["400", "401", "403", "404", "413", "422", "429"]),
    get("/healthz", "getHealth", "server", "string")
        .says("Whether the process answers", "`ok`")
        .media("text/plain")
        .problems(&[])
        .open(),
    get("/readyz", "getReady", "server", "string")
        .says("Whether the journal can be read and events are accepted", "`ready`")
        .media("text/plain")
        .problems(&["503"])
        .open(),
    get("/metrics", "getMetrics", "server", "string")
        .says("Counters", "OpenMetrics text")
        .media("application/openmetrics-text")
        .problems(&["401"]),
    get("/openapi.json", "getDescription", "server", "AnyObject")
        .says("This document; with a key, also the events of the caller's charters", "An OpenAPI document")
        .problems(&[])
        .open(),
    get("/codes/{code}", "getCode", "server", "string")
        .says("What a code means", "Markdown")
        .media("text/markdown")
        .problems(&["404"])
        .open(),
    get("/", "getHome", "server", "AnyObject").says("Where to go from here", "Addresses").problems(&[]).open(),
];
