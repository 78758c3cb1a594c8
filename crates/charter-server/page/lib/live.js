// Live streams (server-sent events) over fetch: with the headers of the client, resumed after each cut, never silent.
import { Problem } from "./api.js";

/** The server sends something at least every 15 s. */
const SILENT_MS = 40_000;
const FIRST_PAUSE_MS = 400;
const LONGEST_PAUSE_MS = 5_000;
/** A browser opens six connections to a server, in all tabs together: hidden tabs give theirs back after this time. */
const HIDDEN_MS = 10_000;

/** @typedef {{name: string, data: string, id: string | null}} Frame */

/** Reads frames from the text of a stream. */
export class Frames {
  #rest = "";

  /** @param {string} text @returns {Frame[]} */
  push(text) {
    const parts = (this.#rest + text).split("\n\n");
    this.#rest = parts.pop() ?? "";
    return parts.map((part) => {
      /** @type {Frame} */
      const frame = { name: "message", data: "", id: null };
      /** @type {string[]} */
      const data = [];
      for (const line of part.split("\n")) {
        if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
        else if (line.startsWith("event:")) frame.name = line.slice(6).trim();
        else if (line.startsWith("id:")) frame.id = line.slice(3).trim();
      }
      frame.data = data.join("\n");
      return frame;
    });
  }
}

/**
 * Follows a stream until it is stopped. Sends `frame` (detail: `Frame`), `state` (detail: `live`, `lost`, `ended`) and
 * `reset`, when the server does not know the place any more from which to resume: then everything has to be read again.
 */
export class Live extends EventTarget {
  /**
   * @param {import("./api.js").Client} client
   * @param {string} path
   * @param {{after?: number, keep?: string}} [options] `keep`: one hidden tab, the holder of this lock, goes on.
   */
  constructor(client, path, { after, keep } = {}) {
    super();
    this.keep = keep;
    this.wanted = false;
    this.hiding = 0;
    /** Gives the lock back. @type {(() => void) | null} */
    this.free = null;
    this.visibility = () => this.#seen();
    this.client = client;
    this.path = path;
    /** @type {string | null} */
    this.last = after === undefined ? null : String(after);
    /** @type {"connecting" | "live" | "lost" | "ended"} */
    this.state = "connecting";
    /** When something last arrived. @type {Date | null} */
    this.heard = null;
    /** @type {AbortController | null} */
    this.controller = null;
  }

  /** @param {"live" | "lost" | "ended"} state */
  #become(state) {
    if (this.state === state) return;
    this.state = state;
    this.dispatchEvent(new CustomEvent("state", { detail: state }));
  }

  start() {
    if (this.wanted) return this;
    this.wanted = true;
    document.addEventListener("visibilitychange", this.visibility);
    this.#open();
    return this;
  }

  stop() {
    this.wanted = false;
    document.removeEventListener("visibilitychange", this.visibility);
    clearTimeout(this.hiding);
    this.free?.();
    this.#close();
  }

  #open() {
    if (this.controller) return;
    this.controller = new AbortController();
    this.#follow(this.controller.signal);
  }

  #close() {
    this.controller?.abort();
    this.controller = null;
  }

  /** The tab was hidden or shown. What was missed comes when the stream is resumed. */
  #seen() {
    clearTimeout(this.hiding);
    if (document.hidden) {
      this.hiding = window.setTimeout(() => this.#hide(), HIDDEN_MS);
    } else {
      this.free?.();
      if (this.wanted && this.state !== "ended") this.#open();
    }
  }

  #hide() {
    const { keep } = this;
    if (!keep || !navigator.locks) return this.#close();
    navigator.locks.request(keep, { ifAvailable: true }, (lock) => {
      if (!lock || !document.hidden || !this.wanted) return lock ? undefined : this.#close();
      return new Promise((done) => (this.free = () => done(undefined)));
    });
  }

  /** @param {AbortSignal} signal */
  async #follow(signal) {
    let pause = FIRST_PAUSE_MS;
    while (!signal.aborted) {
      try {
        await this.#connect(signal, () => (pause = FIRST_PAUSE_MS));
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof Problem && [401, 403, 404].includes(error.status)) {
          this.#become("ended");
          this.controller = null;
          return;
        }
        if (error instanceof Problem && error.status === 400 && this.last !== null) {
          this.last = null;
          this.dispatchEvent(new CustomEvent("reset"));
          continue;
        }
      }
      if (signal.aborted) return;
      this.#become("lost");
      await new Promise((done) => {
        const timer = setTimeout(done, pause);
        const wake = () => (clearTimeout(timer), done(undefined));
        signal.addEventListener("abort", wake, { once: true });
        addEventListener("online", wake, { once: true, signal });
      });
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
    }
  }

  /** @param {AbortSignal} outer @param {() => void} connected */
  async #connect(outer, connected) {
    const inner = new AbortController();
    const abort = () => inner.abort();
    outer.addEventListener("abort", abort, { once: true });
    let silence = setTimeout(abort, SILENT_MS);
    try {
      /** @type {Record<string, string>} */
      const headers = { Accept: "text/event-stream" };
      if (this.last !== null) headers["Last-Event-ID"] = this.last;
      const response = await this.client.fetch(this.path, { headers, signal: inner.signal });
      if (!response.body) return;
      connected();
      this.heard = new Date();
      this.#become("live");
      const frames = new Frames();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(silence);
        silence = setTimeout(abort, SILENT_MS);
        this.heard = new Date();
        for (const frame of frames.push(value)) {
          if (frame.id) this.last = frame.id;
          if (frame.data) this.dispatchEvent(new CustomEvent("frame", { detail: frame }));
        }
      }
    } finally {
      clearTimeout(silence);
      outer.removeEventListener("abort", abort);
    }
  }
}

/** @type {WeakMap<import("./api.js").Client, Journal>} */
const journals = new WeakMap();

/**
 * The records of all runs that the client may see, as they are committed; shared by everything on the page. Sends
 * `record` (detail: the record), `marked` (requests of the inbox were marked), `state` and `reset`.
 */
export class Journal extends EventTarget {
  /** @param {import("./api.js").Client} client */
  constructor(client) {
    super();
    this.client = client;
    /** @type {Live | null} */
    this.live = null;
    this.users = 0;
    client.addEventListener("me", () => this.#restart());
    client.addEventListener("signed-out", () => this.#close());
  }

  get state() {
    return this.live?.state ?? "connecting";
  }

  get heard() {
    return this.live?.heard ?? null;
  }

  use() {
    this.users += 1;
    if (!this.live) this.#restart();
    return () => {
      this.users -= 1;
      if (this.users === 0) this.#close();
    };
  }

  #close() {
    this.live?.stop();
    this.live = null;
  }

  #restart() {
    this.#close();
    if (!this.users || !this.client.me) return;
    const live = new Live(this.client, "/v1/stream", { keep: "charter-live" });
    this.live = live;
    live.addEventListener("frame", (event) => {
      const frame = /** @type {CustomEvent<Frame>} */ (event).detail;
      if (frame.name === "record") this.dispatchEvent(new CustomEvent("record", { detail: JSON.parse(frame.data) }));
      if (frame.name === "inbox") this.dispatchEvent(new CustomEvent("marked"));
    });
    for (const name of ["state", "reset"]) {
      live.addEventListener(name, () => this.live === live && this.dispatchEvent(new CustomEvent(name, { detail: live.state })));
    }
    live.start();
  }
}

/** The journal of a client. @param {import("./api.js").Client} client @returns {Journal} */
export function journalOf(client) {
  const known = journals.get(client) ?? new Journal(client);
  journals.set(client, known);
  return known;
}
