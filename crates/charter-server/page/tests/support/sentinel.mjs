// A server with one run of `sentinel`, as docs/http.md describes it, whose states a test sets.
import { createHash } from "node:crypto";

const digestOf = (value) => `sha256:${createHash("sha256").update(JSON.stringify(value)).digest("hex")}`;
const TEXT = { type: "string", minLength: 1, pattern: "\\S" };

/** The events that each state accepts from somebody with all roles. */
const LEGAL = {
  IDLE: ["START"],
  CURATING_CONTEXT: ["ABORT"],
  AWAITING_CONTEXT_APPROVAL: ["APPROVE_CONTEXT", "REVISE_CONTEXT", "REJECT_CONTEXT", "ABORT"],
  PLANNING_WITH_CONTEXT: ["ABORT"],
  GENERATING_PROPOSAL: ["ABORT"],
  AWAITING_PROPOSAL_APPROVAL: ["APPROVE_PROPOSAL", "EDIT_PROPOSAL", "REJECT_PROPOSAL", "ABORT"],
  APPLYING_CHANGESET: ["ABORT"],
  REFLECTING: ["ABORT"],
  ERROR: ["RESET"],
};
/** Where an accepted event leads. */
const NEXT = {
  START: "CURATING_CONTEXT", APPROVE_CONTEXT: "PLANNING_WITH_CONTEXT", REVISE_CONTEXT: "CURATING_CONTEXT", REJECT_CONTEXT: "IDLE",
  APPROVE_PROPOSAL: "APPLYING_CHANGESET", EDIT_PROPOSAL: "PLANNING_WITH_CONTEXT", REJECT_PROPOSAL: "IDLE", ABORT: "ERROR", RESET: "IDLE",
};

export class Sentinel {
  constructor() {
    this.roles = ["approver", "operator"];
    this.requests = [];
    this.started = [];
    this.streams = new Set();
    this.delay = 0;
    this.isDown = false;
    this.charter = "sentinel";
    this.reset();
  }

  reset() {
    this.records = [];
    this.status = "active";
    this.context = { phase: "IDLE", cycle: 0, goal: null, bundle: null, proposal: null, error: null, dirty: null };
    this.record("charter.start", "IDLE", false);
  }

  get state() {
    return this.context.phase;
  }

  /** Commits a record, and tells the streams. */
  record(type, to = this.state, isMove = to !== this.state) {
    const effects = isMove
      ? [{ kind: "emit", type: "fsm:transition", data: { from: this.state, to, goal: this.context.goal, cycle: this.context.cycle } }]
      : [];
    this.context.phase = to;
    const record = { seq: this.records.length, at: new Date().toISOString(), event: { type }, verdict: "accepted", effects, state: [to] };
    this.records.push(record);
    for (const stream of this.streams) this.write(stream, record);
    return record;
  }

  write(stream, record) {
    stream.write(`id: ${record.seq}\nevent: record\ndata: ${JSON.stringify(record)}\n\n`);
  }

  /** A move that the run makes by itself. */
  move(to, change = {}) {
    Object.assign(this.context, change);
    return this.record("done.invoke.actor", to);
  }

  get value() {
    return { APPROVE_CONTEXT: this.context.bundle, APPROVE_PROPOSAL: this.context.proposal };
  }

  legal() {
    const isPaused = this.status === "paused";
    const types = LEGAL[this.state].filter((type) => !isPaused || /^(REJECT|ABORT|RESET)/.test(type));
    const allowed = types.filter((type) => this.roles.includes(type === "START" || type === "RESET" ? "operator" : "approver"));
    const events = allowed.map((type) => ({
      type, to: "root", data: { type: "object", properties: { text: TEXT } },
      demands: /^APPROVE/.test(type) ? { approves: { digest: digestOf(this.value[type]), value: "context" } } : {},
    }));
    return { run: "s", seq: this.records.length - 1, status: this.status, by: { id: "ana", kind: "person", roles: this.roles }, events, tasks: [] };
  }

  view() {
    const seq = this.records.length - 1;
    const next_due = /^AWAITING/.test(this.state) ? new Date(Date.now() + 299_000).toISOString() : null;
    return {
      run: "s", seq, charter: { id: this.charter, digest: "sha256:0" }, state: [this.state], status: this.status, next_due,
      actors: [{ id: "root", context: this.context, state: [this.state] }], updated: this.records[seq].at,
    };
  }

  event({ type, data }, match) {
    if (type === "charter.pause") this.status = "paused";
    else if (type === "charter.resume") this.status = "active";
    else {
      if (match !== undefined && Number(match.replaceAll('"', "")) < this.records.length - 1) return [409, { code: "stale", detail: "stale" }];
      const legal = this.legal().events.find((event) => event.type === type);
      if (!legal) return [409, { code: "not-legal", detail: `\`${type}\` is not accepted in ${this.state} <b>` }];
      if (legal.demands.approves && legal.demands.approves.digest !== data.digest) return [409, { code: "approval", detail: "the digest is that of something else" }];
      if (type === "START") Object.assign(this.context, { goal: data.goal, cycle: this.context.cycle + 1 });
      return [200, this.record(type, NEXT[type])];
    }
    return [200, this.record(type)];
  }

  /** Answers a request; for `serve` of browser.mjs. */
  async answer(request, response) {
    const url = new URL(request.url, "http://loopback");
    if (!url.pathname.startsWith("/v1/")) return false;
    if (this.isDown) {
      request.socket.destroy();
      return true;
    }
    let text = "";
    for await (const part of request) text += part;
    const json = (status, body) => {
      response.writeHead(status, { "Content-Type": status < 400 ? "application/json" : "application/problem+json" });
      response.end(JSON.stringify(body));
    };
    if (request.method === "POST") {
      if (this.delay) await new Promise((done) => setTimeout(done, this.delay));
      const body = JSON.parse(text);
      this.requests.push({ path: url.pathname, body, headers: request.headers });
      if (url.pathname === "/v1/runs") {
        this.started.push(body);
        this.reset();
        this.context.goal = body.input.goal;
        this.context.cycle = 1;
        json(201, { ...this.record("charter.start", "CURATING_CONTEXT"), run: "s-test" });
      } else json(...this.event(body, request.headers["if-match"]));
    } else if (url.pathname === "/v1/me") json(200, { id: "ana", kind: "person", auth: "session", roles: this.roles, csrf: "token" });
    else if (!/^\/v1\/runs\/s(-test)?(\/|$)/.test(url.pathname)) json(404, { code: "not-found", detail: "no run `<i>x</i>`" });
    else if (url.pathname.endsWith("/legal")) json(200, this.legal());
    else if (url.pathname.endsWith("/stream")) {
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      response.write("retry: 1000\n\n");
      const after = Number(request.headers["last-event-id"] ?? url.searchParams.get("after") ?? -1);
      for (const record of this.records.slice(after + 1)) this.write(response, record);
      this.streams.add(response);
      response.on("close", () => this.streams.delete(response));
    } else json(200, this.view());
    return true;
  }

  /** The connections break, and new ones do too, until it is up again. */
  down() {
    this.isDown = true;
    for (const stream of this.streams) stream.destroy();
  }
}
