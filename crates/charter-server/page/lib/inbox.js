// The requests that wait for the caller, kept up to date, and what became of those that were shown.
import { problemOf } from "./api.js";
import { words } from "./format.js";
import { journalOf } from "./live.js";

const SETTLE_MS = 120;
/** Closed requests that are kept to be shown. */
const MAX_CLOSED = 100;
/** Values that were shown, which are kept to say what changed since. */
const MAX_SHOWN = 100;
/** What expired is told for this time, if nobody looked for longer or for the first time. */
const AWAY_MS = 24 * 3_600_000;
const LONGEST_MS = 14 * AWAY_MS;
/** When a person looked last in this browser, and before this tab was opened. */
const LOOKED = "charter-looked ";
/** Characters of a question that are shown in the list. */
const MAX_QUESTION = 300;

/**
 * @typedef {Record<string, any>} Request
 * @typedef {{request: Request, record: Record<string, any> | null, at: number, missed?: boolean, now: {status: string, state: string[]} | null}} Closed
 *   `record` closed it; `missed`: it expired before the page was opened; `now` is where the run is by now.
 */

/** Whether the caller may decide; what others have to decide is a notice. @param {Request} request */
export function isMine(request) {
  return request.kind === "task" || request.decisions.some((/** @type {any} */ d) => !d.withheld);
}

/** Whether the caller has put it off. @param {Request} request @param {number} now @returns {boolean} */
export function isPutOff(request, now) {
  return Boolean(request.marks?.later) && Date.parse(request.marks.later) > now;
}

/** What a request is about, in a few words. @param {Request} request @returns {string} */
export function titleOf(request) {
  if (request.title) return request.title;
  if (request.kind === "task") return words(request.task.src);
  return request.state.map((/** @type {string} */ path) => words(path.split(".").at(-1) ?? path)).join(", ") || request.run;
}

/** A value in a line: `amount 250, to Blue Ink Ltd`. @param {any} value @returns {string} */
function inLine(value) {
  if (Array.isArray(value)) return value.map(inLine).join(", ");
  if (typeof value !== "object" || value === null) return String(value);
  return Object.entries(value).map(([name, inner]) => `${name} ${typeof inner === "object" ? JSON.stringify(inner) : inner}`).join(", ");
}

/** What exactly is asked, in a line: what the charter shows of the run first, or the value that is approved. @param {Request} request @returns {string} */
export function questionOf(request) {
  const approved = request.decisions.find((/** @type {any} */ d) => d.demands?.approves)?.value;
  const value = request.about?.value ?? approved ?? request.task?.input ?? null;
  return value === null ? "" : inLine(value).replace(/\s+/gu, " ").trim().slice(0, MAX_QUESTION);
}

/** @type {WeakMap<import("./api.js").Client, Inbox>} */
const inboxes = new WeakMap();

/** Sends `change` when something else has to be shown, and `arrived` (detail: requests) for new ones. */
export class Inbox extends EventTarget {
  /** @param {import("./api.js").Client} client */
  constructor(client) {
    super();
    this.client = client;
    /** @type {Map<string, Request>} */
    this.requests = new Map();
    /** @type {Map<string, Closed>} */
    this.closed = new Map();
    this.all = true;
    /** @type {Date | null} */
    this.asOf = null;
    /** @type {import("./api.js").Problem | null} */
    this.problem = null;
    /** @type {Set<string>} */
    this.stale = new Set();
    this.timer = 0;
    this.marking = 0;
    /** The requests that were noted as seen. @type {Set<string>} */
    this.noted = new Set();
    /** What was shown last at each place: the request, its value, and the one before. @type {Map<string, {id: string, value: any, before: any}>} */
    this.shown = new Map();
    this.users = 0;
    const journal = journalOf(client);
    journal.addEventListener("record", (event) => this.#note(/** @type {CustomEvent} */ (event).detail.run));
    journal.addEventListener("marked", () => this.#marked());
    journal.addEventListener("reset", () => this.load());
    journal.addEventListener("state", (event) => /** @type {CustomEvent} */ (event).detail === "live" && this.load());
    client.addEventListener("me", () => this.#forget());
  }

  #forget() {
    this.requests.clear();
    this.closed.clear();
    this.noted.clear();
    this.shown.clear();
    this.asOf = null;
    if (this.users) this.load();
  }

  use() {
    this.users += 1;
    const release = journalOf(this.client).use();
    if (this.users === 1) this.load();
    return () => {
      this.users -= 1;
      release();
    };
  }

  /** Those that the caller may decide, the earliest deadline first. */
  get mine() {
    return [...this.requests.values()].filter(isMine);
  }

  #changed() {
    this.dispatchEvent(new CustomEvent("change"));
  }

  /** Somebody marked a request: which one is not told. */
  #marked() {
    if (!this.users || this.marking) return;
    this.marking = window.setTimeout(() => {
      this.marking = 0;
      this.load();
    }, SETTLE_MS);
  }

  /**
   * Marks a request, which decides nothing.
   * @param {Request} request
   * @param {{mark: "seen" | "later" | "now" | "assign" | "release", until?: string, to?: string}} mark
   */
  async mark(request, mark) {
    const { marks } = await this.client.post("/v1/inbox", { run: request.run, request: request.id, ...mark });
    const open = this.requests.get(request.id);
    if (open) open.marks = marks;
    this.#changed();
  }

  /**
   * Notes which value a request asks to approve; returns the one that was shown for the same approval before, if any.
   * @param {Request} request @param {any} value
   */
  show(request, value) {
    const place = request.id.slice(0, request.id.lastIndexOf("/"));
    const last = this.shown.get(place);
    if (last && last.id === request.id) return last.before;
    this.shown.delete(place);
    this.shown.set(place, { id: request.id, value, before: last?.value });
    for (const oldest of [...this.shown.keys()].slice(0, Math.max(0, this.shown.size - MAX_SHOWN))) this.shown.delete(oldest);
    return last?.value;
  }

  /** Notes that the caller has seen a request, once. @param {Request} request */
  seen(request) {
    const me = this.client.me?.id;
    if (!me || this.noted.has(request.id) || request.marks?.seen.some((/** @type {any} */ one) => one.id === me)) return;
    this.noted.add(request.id);
    // Who cannot note it has seen it all the same.
    this.mark(request, { mark: "seen" }).catch(() => {});
  }

  /** @param {string} run */
  #note(run) {
    if (!this.users) return;
    this.stale.add(run);
    if (!this.timer) this.timer = window.setTimeout(() => this.#refresh(), SETTLE_MS);
  }

  async #refresh() {
    this.timer = 0;
    const runs = [...this.stale];
    this.stale.clear();
    if (runs.length > 20) await this.load();
    else for (const run of runs) await this.refresh(run);
  }

  /** Since when the person has not looked here; the same as long as the tab is open. @returns {string} */
  #away() {
    const name = LOOKED + this.client.me?.id;
    const now = Date.now();
    const day = new Date(now - AWAY_MS).toISOString();
    try {
      const since = sessionStorage.getItem(name) ?? localStorage.getItem(name) ?? day;
      sessionStorage.setItem(name, since);
      return now - Date.parse(since) < LONGEST_MS ? since : new Date(now - LONGEST_MS).toISOString();
    } catch {
      return day;
    }
  }

  /** Reads what expired while nobody looked. */
  async #readMissed() {
    try {
      const { requests } = await this.client.get(`/v1/inbox?expired_since=${encodeURIComponent(this.#away())}`);
      for (const request of requests.reverse()) {
        if (this.closed.has(request.id) || this.requests.has(request.id) || !isMine(request)) continue;
        this.closed.set(request.id, { request, record: null, at: Date.parse(request.expired.at), missed: true, now: null });
        await this.#explain(request);
        await this.#follow(request.run);
      }
    } catch (error) {
      this.problem = problemOf(error);
    }
    this.#changed();
  }

  /** The person has looked at it now. */
  #looked() {
    try {
      if (document.visibilityState === "visible") localStorage.setItem(LOOKED + this.client.me?.id, new Date().toISOString());
    } catch {
      // Without a memory, the last day is told.
    }
  }

  /** Reads everything again. */
  async load() {
    if (!this.client.me) return;
    try {
      const body = await this.client.get("/v1/inbox");
      const first = this.asOf === null;
      this.all = body.all;
      await this.#replace(body.requests, () => true);
      if (first) await this.#readMissed();
      this.#looked();
      for (const run of new Set([...this.closed.values()].map(({ request }) => request.run))) await this.#follow(run);
    } catch (error) {
      this.problem = problemOf(error);
      this.#changed();
    }
  }

  /** Reads again what waits in a run. @param {string} run */
  async refresh(run) {
    try {
      const body = await this.client.get(`/v1/inbox?run=${encodeURIComponent(run)}`);
      await this.#replace(body.requests, (request) => request.run === run);
      await this.#follow(run);
    } catch (error) {
      const problem = problemOf(error);
      // A run that the caller may not see (any more).
      if (problem.status === 404) await this.#replace([], (request) => request.run === run);
    }
  }

  /** @param {Request[]} found @param {(request: Request) => boolean} isOf */
  async #replace(found, isOf) {
    const first = this.asOf === null;
    const now = new Map(found.map((request) => [request.id, request]));
    const gone = [...this.requests.values()].filter((request) => isOf(request) && !now.has(request.id));
    const arrived = found.filter((request) => !this.requests.has(request.id));
    const rest = [...this.requests.values()].filter((request) => !isOf(request));
    const order = (/** @type {Request} */ r) => `${r.due ?? "9999"} ${r.since?.at ?? ""}`;
    const all = [...rest, ...found].sort((a, b) => (order(a) < order(b) ? -1 : 1));
    this.requests = new Map(all.map((request) => [request.id, request]));
    this.asOf = new Date();
    this.problem = null;
    for (const request of found) this.closed.delete(request.id);
    for (const request of gone) {
      this.closed.set(request.id, { request, record: null, at: Date.now(), now: null });
      for (const id of [...this.closed.keys()].slice(0, Math.max(0, this.closed.size - MAX_CLOSED))) this.closed.delete(id);
    }
    this.#changed();
    if (!first && arrived.length) this.dispatchEvent(new CustomEvent("arrived", { detail: arrived.filter(isMine) }));
    await Promise.all(gone.map((request) => this.#explain(request)));
  }

  /** Where a run is by now, of which requests are shown as closed. @param {string} run */
  async #follow(run) {
    const closed = () => [...this.closed.values()].filter(({ request }) => request.run === run);
    if (!closed().length) return;
    try {
      const { status, state } = await this.client.get(`/v1/runs/${encodeURIComponent(run)}`);
      for (const one of closed()) one.now = { status, state };
    } catch {
      // Rather nothing than what is not so any more.
      for (const one of closed()) one.now = null;
    }
    this.#changed();
  }

  /** Finds the record that closed a request. @param {Request} request */
  async #explain(request) {
    const after = request.expired ? request.expired.seq - 1 : (request.since?.seq ?? Math.max(0, request.seq - 1));
    try {
      const page = await this.client.get(`/v1/runs/${encodeURIComponent(request.run)}/records?after=${after}&limit=200`);
      const closed = this.closed.get(request.id);
      if (!closed) return;
      closed.record = page.records.find((/** @type {any} */ record) => closes(record, request)) ?? null;
      this.#changed();
    } catch {
      // It is shown as closed; by whom is in the run.
    }
  }
}

/** Whether a record is the one that closed a request. @param {any} record @param {Request} request */
function closes(record, request) {
  if (record.verdict !== "accepted") return false;
  if (request.kind === "task" && record.answers === request.id) return true;
  if (record.status && record.status !== "active" && record.status !== "paused") return true;
  return record.to === request.to && String(record.from) !== String(record.state);
}

/** The inbox of a client. @param {import("./api.js").Client} client @returns {Inbox} */
export function inboxOf(client) {
  const known = inboxes.get(client) ?? new Inbox(client);
  inboxes.set(client, known);
  return known;
}
