// One run, kept up to date, shared by all components that show it: its state, what is legal, its records by number.
import { problemOf } from "./api.js";
import { Live } from "./live.js";

const PAGE = 64;
/** Pages of records, and earlier states, that are kept. */
const MAX_PAGES = 48;
const MAX_STATES = 24;
const MAX_NEWS = 200;
const SETTLE_MS = 120;

/** @typedef {{at: number, kind: string, news: any}} News */

/** @type {WeakMap<import("./api.js").Client, Map<string, Run>>} */
const runs = new WeakMap();

/** Keeps the entries that were used last. @template V */
class Recent {
  /** @param {number} limit */
  constructor(limit) {
    this.limit = limit;
    /** @type {Map<any, V>} */
    this.map = new Map();
  }

  /** @param {any} key @returns {V | undefined} */
  get(key) {
    const value = this.map.get(key);
    if (value === undefined) return undefined;
    this.map.delete(key);
    this.map.set(key, value);
    return value;
  }

  /** @param {any} key @param {V} value */
  set(key, value) {
    this.map.delete(key);
    this.map.set(key, value);
    for (const old of [...this.map.keys()].slice(0, Math.max(0, this.map.size - this.limit))) this.map.delete(old);
    return value;
  }
}

/** Sends `change` when something else has to be shown. */
export class Run extends EventTarget {
  /** @param {import("./api.js").Client} client @param {string} id */
  constructor(client, id) {
    super();
    this.client = client;
    this.id = id;
    this.path = `/v1/runs/${encodeURIComponent(id)}`;
    /** The current state. @type {any} */
    this.view = null;
    /** @type {any} */
    this.legal = null;
    /** The number of the last record. */
    this.last = -1;
    /** @type {News[]} */
    this.news = [];
    /** What arrives for actors that work, by effect and call. @type {Map<string, any>} */
    this.arriving = new Map();
    /** @type {import("./api.js").Problem | null} */
    this.problem = null;
    /** @type {Recent<any[]>} */
    this.pages = new Recent(MAX_PAGES);
    /** @type {Recent<Promise<any>>} */
    this.states = new Recent(MAX_STATES);
    /** @type {Recent<Promise<any>>} */
    this.explained = new Recent(MAX_PAGES);
    /** @type {Set<number>} */
    this.asked = new Set();
    /** @type {Live | null} */
    this.live = null;
    this.users = 0;
    this.timer = 0;
    client.addEventListener("me", () => this.users && this.#begin());
  }

  use() {
    this.users += 1;
    if (this.users === 1) this.#begin();
    return () => {
      this.users -= 1;
      if (this.users > 0) return;
      this.live?.stop();
      this.live = null;
      runs.get(this.client)?.delete(this.id);
    };
  }

  #changed() {
    this.dispatchEvent(new CustomEvent("change"));
  }

  async #begin() {
    this.live?.stop();
    await this.load();
    if (!this.view || !this.users) return;
    const live = new Live(this.client, `${this.path}/stream`, { after: this.view.seq });
    this.live = live;
    live.addEventListener("frame", (event) => this.#frame(/** @type {CustomEvent} */ (event).detail));
    live.addEventListener("reset", () => this.#begin());
    live.addEventListener("state", () => {
      // News are not repeated: what has begun and ended in between is in the state.
      if (live.state === "live") this.#later();
      this.#changed();
    });
    live.start();
  }

  /** @param {import("./live.js").Frame} frame */
  #frame(frame) {
    const data = JSON.parse(frame.data);
    if (frame.name === "record") {
      this.last = Math.max(this.last, data.seq);
      const page = this.pages.get(Math.floor(data.seq / PAGE));
      if (page) page[data.seq % PAGE] = data;
      else if (data.seq % PAGE === 0) this.pages.set(data.seq / PAGE, [data]);
      this.#later();
    } else if (frame.name === "news") {
      const [kind, news] = Object.entries(data)[0] ?? ["", null];
      if (kind === "progress" && news.note === undefined) {
        this.arriving.set(`${news.effect} ${news.call}`, news);
        return this.#changed();
      }
      this.news = [...this.news, { at: Date.now(), kind, news }].slice(-MAX_NEWS);
      if (kind === "began") this.#forget(news.effect);
      if (kind !== "emitted" && kind !== "logged" && kind !== "progress") this.#later();
    }
    this.#changed();
  }

  /** Another attempt begins, or the work is over. @param {string} effect */
  #forget(effect) {
    for (const [key, progress] of this.arriving) if (progress.effect === effect) this.arriving.delete(key);
  }

  #later() {
    if (!this.timer) this.timer = window.setTimeout(() => ((this.timer = 0), this.load()), SETTLE_MS);
  }

  /** Reads the state and what is legal again. */
  async load() {
    try {
      const [view, legal] = await Promise.all([this.client.get(this.path), this.client.get(`${this.path}/legal`)]);
      this.view = view;
      this.legal = legal;
      const works = new Set((view.working ?? []).map((/** @type {any} */ w) => w.effect));
      for (const { effect } of [...this.arriving.values()]) if (!works.has(effect)) this.#forget(effect);
      this.last = Math.max(this.last, view.seq);
      this.problem = null;
    } catch (error) {
      this.problem = problemOf(error);
    }
    this.#changed();
  }

  /** A record, if it is here; if not, it is asked for, and `change` follows. @param {number} seq @returns {any} */
  record(seq) {
    const number = Math.floor(seq / PAGE);
    const record = this.pages.get(number)?.[seq % PAGE];
    if (!record) this.#page(number);
    return record ?? null;
  }

  /** Reads the first records, as many as are wanted, unless they are here. @param {number} count */
  async first(count) {
    const pages = Math.ceil(Math.min(count, this.last + 1) / PAGE);
    for (let number = 0; number < pages; number++) {
      const kept = this.pages.get(number) ?? [];
      const wanted = Math.min(PAGE, this.last + 1 - number * PAGE);
      if (Object.keys(kept).length < wanted) await this.#page(number);
    }
  }

  /** @param {number} number */
  async #page(number) {
    if (this.asked.has(number)) return;
    this.asked.add(number);
    try {
      const after = number ? `after=${number * PAGE - 1}&` : "";
      const body = await this.client.get(`${this.path}/records?${after}limit=${PAGE}`);
      const page = this.pages.get(number) ?? [];
      for (const record of body.records) page[record.seq % PAGE] = record;
      this.pages.set(number, page);
      this.#changed();
    } catch (error) {
      this.problem = problemOf(error);
    }
    this.asked.delete(number);
  }

  /** The state after a record. @param {number} seq @returns {Promise<any>} */
  at(seq) {
    if (seq === this.view?.seq) return Promise.resolve(this.view);
    return this.states.get(seq) ?? this.states.set(seq, this.#kept(this.states, seq, `${this.path}/at/${seq}`));
  }

  /** Why a record has its verdict. @param {number} seq @returns {Promise<any>} */
  explain(seq) {
    return this.explained.get(seq) ?? this.explained.set(seq, this.#kept(this.explained, seq, `${this.path}/explain/${seq}`));
  }

  /** @param {Recent<Promise<any>>} kept @param {number} seq @param {string} path */
  #kept(kept, seq, path) {
    const asked = this.client.get(path);
    asked.catch(() => kept.map.delete(seq));
    return asked;
  }

  /** All records as JSON Lines, as they are in the journal, byte for byte. @returns {AsyncGenerator<string>} */
  async *lines() {
    for (let after = /** @type {number | null} */ (null); ; ) {
      const text = await this.client.text(`${this.path}/records?limit=500${after === null ? "" : `&after=${after}`}`);
      yield elements(text).map((line) => `${line}\n`).join("");
      const next = JSON.parse(text).after;
      if (next === undefined) return;
      after = next;
    }
  }
}

/** The elements of the array of `{"records":[...` as text: numbers and the order of keys stay as they are. @param {string} text @returns {string[]} */
export function elements(text) {
  const found = [];
  let depth = 0;
  let inText = false;
  let start = -1;
  for (let at = text.indexOf("[") + 1; at < text.length; at++) {
    const c = text[at];
    if (inText) {
      if (c === "\\") at++;
      else if (c === '"') inText = false;
    } else if (c === '"') {
      inText = true;
    } else if (c === "{" || c === "[") {
      if (depth++ === 0) start = at;
    } else if (c === "}" || c === "]") {
      if (depth === 0) return found;
      if (--depth === 0) found.push(text.slice(start, at + 1));
    }
  }
  return found;
}

/** A run of a client. @param {import("./api.js").Client} client @param {string} id @returns {Run} */
export function runOf(client, id) {
  const own = runs.get(client) ?? new Map();
  runs.set(client, own);
  const known = own.get(id) ?? new Run(client, id);
  own.set(id, known);
  return known;
}
