// The client of a server: who asks, errors as `Problem`, live streams.

/** An error answer (problem details, RFC 9457), or no answer at all: then `status` is 0. */
export class Problem extends Error {
  /**
   * @param {number} status
   * @param {string} code
   * @param {string} detail
   * @param {Record<string, any>} [body]
   */
  constructor(status, code, detail, body = {}) {
    super(detail);
    this.name = "Problem";
    this.status = status;
    this.code = code;
    this.detail = detail;
    /** @type {Record<string, any>} */
    this.body = body;
  }
}

/** The problem of an error of any kind. @param {unknown} error @returns {Problem} */
export function problemOf(error) {
  if (error instanceof Problem) return error;
  return new Problem(0, "page", error instanceof Error ? error.message : String(error));
}

/**
 * Who is asked, and as whom. Sends `me` when the principal changes, and `signed-out` when the server does not know it
 * any more.
 */
export class Client extends EventTarget {
  /** @param {{base?: string, key?: string | null, as?: string | null}} [options] */
  constructor({ base = "", key = null, as = null } = {}) {
    super();
    this.base = base.replace(/\/+$/, "");
    this.key = key;
    /** The name that is claimed at a server without keys. */
    this.as = as;
    /** @type {{id: string, kind: string, auth: string, roles: string[] | null, csrf?: string} | null} */
    this.me = null;
    /** @type {Promise<any> | null} */
    this.asking = null;
  }

  /** @param {Record<string, string>} more @returns {Record<string, string>} */
  headers(more = {}) {
    const headers = { ...more };
    if (this.key) headers.Authorization = `Bearer ${this.key}`;
    if (this.as) headers["Charter-As"] = this.as;
    if (this.me?.csrf) headers["X-CSRF-Token"] = this.me.csrf;
    return headers;
  }

  /**
   * @param {string} path
   * @param {RequestInit & {headers?: Record<string, string>}} [init]
   * @returns {Promise<Response>}
   */
  async fetch(path, init = {}) {
    /** @type {Response} */
    let response;
    try {
      // Cookies are for the page's own server only.
      const credentials = this.base ? "omit" : "same-origin";
      response = await fetch(this.base + path, { ...init, credentials, headers: this.headers(init.headers) });
    } catch (error) {
      if (init.signal?.aborted) throw error;
      throw new Problem(0, "unreachable", "The server does not answer.");
    }
    if (response.ok) return response;
    const text = await response.text().catch(() => "");
    /** @type {Record<string, any>} */
    let body = {};
    try {
      body = JSON.parse(text);
    } catch {
      // Not from this server: a proxy, perhaps.
    }
    const problem = new Problem(response.status, body.code ?? "http", body.detail ?? `The server answered ${response.status}.`, body);
    if (response.status === 401 && this.me) {
      this.me = null;
      this.dispatchEvent(new CustomEvent("signed-out", { detail: problem }));
    }
    throw problem;
  }

  /** @param {string} path @param {AbortSignal} [signal] @returns {Promise<any>} */
  async get(path, signal) {
    return (await this.fetch(path, { headers: { Accept: "application/json" }, signal })).json();
  }

  /** @param {string} path @param {AbortSignal} [signal] @returns {Promise<string>} */
  async text(path, signal) {
    return (await this.fetch(path, { signal })).text();
  }

  /**
   * @param {string} path
   * @param {any} body
   * @param {{key?: string, match?: number}} [options] The id of the event, and the last record that was seen.
   * @returns {Promise<any>}
   */
  async post(path, body, { key, match } = {}) {
    /** @type {Record<string, string>} */
    const headers = { "Content-Type": "application/json" };
    if (key) headers["Idempotency-Key"] = key;
    if (match !== undefined) headers["If-Match"] = `"${match}"`;
    return (await this.fetch(path, { method: "POST", headers, body: JSON.stringify(body) })).json();
  }

  /** @param {any} me */
  #is(me) {
    this.me = me;
    this.dispatchEvent(new CustomEvent("me", { detail: me }));
    return me;
  }

  /** Finds out who the caller is, if nobody has yet. */
  known() {
    if (!this.me && !this.asking) this.asking = this.whoami().catch(() => null).finally(() => (this.asking = null));
  }

  /** Asks who the caller is. @returns {Promise<any>} */
  async whoami() {
    return this.#is(await this.get("/v1/me"));
  }

  /** Exchanges a key for a session. @param {string} key */
  async signIn(key) {
    return this.#is(await this.post("/v1/session", { key }));
  }

  /** Exchanges a one-time code for a session. @param {string} code */
  async signInWithCode(code) {
    return this.#is(await this.post("/v1/session", { code }));
  }

  async signOut() {
    if (this.me?.auth === "session") await this.fetch("/v1/session", { method: "DELETE" });
    this.as = null;
    this.me = null;
    this.dispatchEvent(new CustomEvent("signed-out", { detail: null }));
  }

  /** Sends an event. @param {string} run @param {{type: string, to?: string, data?: any}} event @param {{key?: string, match?: number}} [options] */
  send(run, event, options) {
    return this.post(`/v1/runs/${encodeURIComponent(run)}/events`, event, options);
  }
}

/** The client of the page's own server. */
export const own = new Client();

/** @type {Map<string, Client>} */
const others = new Map();

/**
 * The client of a component: its property `client`, that of the server and the key that it names, or the page's own.
 * @param {{client?: Client | null, server?: string | null, key?: string | null}} component
 */
export function clientOf({ client, server, key }) {
  if (client) return client;
  if (!server && !key) return own;
  const base = (server ?? "").replace(/\/+$/, "");
  const name = JSON.stringify([base, key]);
  const known = others.get(name) ?? new Client({ base, key });
  others.set(name, known);
  return known;
}

/** A new id of an event. */
export function newKey() {
  return `page-${crypto.randomUUID()}`;
}
