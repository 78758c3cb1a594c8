// What the widget of sentinel knows: a run, kept up to date by its stream, and what may be done with it.
import { Client, newKey, own, problemOf } from "../lib/api.js";
import { Live } from "../lib/live.js";

/** Transitions that are kept, and records before the last one in which they are looked for. */
const MAX_HISTORY = 50;
const MAX_BACK = 500;
/** Records that arrive together are one change. */
const SETTLE_MS = 60;

/** @typedef {{success: boolean, message: string}} Outcome */
/** @typedef {{from: string, to: string, timestamp: number, context: string | null}} Transition */

/** The client of a server; the page's own one for the page's own server. @param {string} src @param {string | null} key */
export function clientFor(src, key) {
  const url = new URL(src || "/", location.href);
  const isOwn = url.origin === location.origin && url.pathname === "/";
  if (isOwn && !key) return own;
  return new Client({ base: isOwn ? "" : url.href, key });
}

/** A run of the charter `sentinel`. Sends `change`, and `transition` (`detail`: the transition). */
export class SentinelRun extends EventTarget {
  /** @param {Client} client @param {string} id */
  constructor(client, id) {
    super();
    this.client = client;
    this.id = id;
    this.path = `/v1/runs/${encodeURIComponent(id)}`;
    /** @type {any} */
    this.view = null;
    /** @type {any} */
    this.legal = null;
    /** Newest last. @type {Transition[]} */
    this.history = [];
    /** Why nothing is known. @type {import("../lib/api.js").Problem | null} */
    this.problem = null;
    /** @type {Live | null} */
    this.live = null;
    this.timer = 0;
    this.isOpen = false;
    /** The last record that was received. */
    this.last = -1;
  }

  get context() {
    return this.view?.actors?.find((/** @type {any} */ actor) => actor.id === "root")?.context ?? null;
  }

  /** Since when nothing was received, if the connection is lost. @returns {Date | null} */
  get lostSince() {
    return this.live?.state === "lost" ? this.live.heard : null;
  }

  async open() {
    this.isOpen = true;
    try {
      if (!this.client.me) await this.client.whoami();
      await this.refresh();
      if (!this.isOpen) return;
      this.#follow(Math.max(-1, (this.view?.seq ?? 0) - MAX_BACK));
    } catch (error) {
      this.#failed(error);
    }
  }

  close() {
    this.isOpen = false;
    clearTimeout(this.timer);
    this.live?.stop();
    this.live = null;
  }

  #changed() {
    if (this.isOpen) this.dispatchEvent(new CustomEvent("change"));
  }

  /** @param {unknown} error */
  #failed(error) {
    this.problem = problemOf(error);
    this.#changed();
    // A server that does not answer is asked again; one that refuses is not.
    if (this.isOpen && !this.view && [0, 502, 503].includes(this.problem.status)) this.timer = window.setTimeout(() => this.open(), 2_000);
  }

  /** @param {number} after */
  #follow(after) {
    this.live?.stop();
    const live = new Live(this.client, `${this.path}/stream`, after >= 0 ? { after } : {});
    this.live = live;
    live.addEventListener("frame", (event) => {
      const frame = /** @type {CustomEvent} */ (event).detail;
      if (frame.name !== "record") return;
      this.#record(JSON.parse(frame.data));
      this.#soon();
    });
    // After a cut the state may have changed in ways that no record tells: the key may have ended.
    live.addEventListener("state", () => (live.state === "live" ? this.#soon() : this.#changed()));
    live.addEventListener("reset", () => {
      this.history = [];
      this.#soon();
    });
    live.start();
  }

  #soon() {
    if (!this.isOpen) return;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.refresh().catch((error) => this.#failed(error)), SETTLE_MS);
  }

  /** @param {any} record */
  #record(record) {
    const isNew = record.seq > (this.view?.seq ?? -1);
    this.last = Math.max(this.last, record.seq);
    for (const effect of record.effects ?? []) {
      if (effect.kind !== "emit" || effect.type !== "fsm:transition") continue;
      const transition = { from: String(effect.data.from), to: String(effect.data.to), timestamp: Date.parse(record.at), context: effect.data.goal ?? null };
      this.history = [...this.history.slice(1 - MAX_HISTORY), transition];
      if (isNew) this.dispatchEvent(new CustomEvent("transition", { detail: transition }));
    }
  }

  /** Reads the state, and what the caller may do. */
  async refresh() {
    const [view, legal] = await Promise.all([this.client.get(this.path), this.client.get(`${this.path}/legal`)]);
    if (view.charter?.id !== "sentinel") {
      this.close();
      throw new Error(`run \`${this.id}\` is of the charter \`${view.charter?.id}\`, not \`sentinel\``);
    }
    if (this.view && view.seq < this.view.seq) return;
    [this.view, this.legal, this.problem] = [view, legal, null];
    this.#changed();
  }

  /** What the caller may send now. @param {string} type @returns {any} */
  may(type) {
    return this.legal?.events?.find((/** @type {any} */ event) => event.type === type) ?? null;
  }

  /** Whether the caller may pause and resume. */
  get operates() {
    return (this.legal?.by?.roles ?? []).includes("operator");
  }

  /**
   * Sends an event. `match`: the last record that its sender has seen.
   * @param {string} type @param {any} data @param {string} done what to say about it @param {number} [match]
   * @returns {Promise<Outcome>}
   */
  async send(type, data, done, match) {
    try {
      const event = data === undefined ? { type } : { type, data };
      await this.client.send(this.id, event, { key: newKey(), match });
      await this.refresh();
      return { success: true, message: done };
    } catch (error) {
      const { code, detail } = problemOf(error);
      this.#soon();
      if (code === "stale") return { success: false, message: "Something newer has happened; look again." };
      return { success: false, message: detail };
    }
  }
}
