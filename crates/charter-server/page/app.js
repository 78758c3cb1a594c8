// The shell of the page: who is signed in, navigation, keys, and the view that the address names.
import { css, html, LitElement, nothing } from "./lit.js";
import { own, problemOf } from "./lib/api.js";
import { isTyping } from "./lib/base.js";
import { clock } from "./lib/format.js";
import { inboxOf } from "./lib/inbox.js";
import { journalOf } from "./lib/live.js";
import { shared } from "./lib/style.js";

/**
 * The views, by the first part of the address after `#/`; each is loaded when it is opened.
 * @type {Record<string, {title: string, key: string, load: () => Promise<any>, draw: (id: string, query: URLSearchParams) => any}>}
 */
const VIEWS = {
  inbox: {
    title: "Inbox",
    key: "i",
    load: () => import("./components/charter-inbox.js"),
    draw: (_id, query) => html`<charter-inbox .request=${query.get("request")} .ofRun=${query.get("run")}></charter-inbox>`,
  },
  runs: {
    title: "Runs",
    key: "r",
    load: () => import("./components/charter-runs.js"),
    draw: (_id, query) => html`<charter-runs
      .charter=${query.get("charter") ?? ""}
      .status=${query.get("status") ?? ""}
      .stuck=${query.has("stuck")}
      .text=${query.get("text") ?? ""}
    ></charter-runs>`,
  },
  run: {
    title: "Run",
    key: "",
    load: () => import("./components/charter-run.js"),
    draw: (id, query) => html`<charter-run .run=${id} .at=${query.has("at") ? Number(query.get("at")) : null}></charter-run>`,
  },
  charters: {
    title: "Charters",
    key: "c",
    load: () => import("./views/charters.js"),
    draw: (id) => html`<view-charters .of=${id}></view-charters>`,
  },
  journal: {
    title: "Journal",
    key: "j",
    load: () => import("./views/journal.js"),
    draw: () => html`<view-journal></view-journal>`,
  },
  try: {
    title: "Try it",
    key: "t",
    load: () => import("./views/try.js"),
    draw: (_id, query) => html`<view-try .charter=${query.get("charter") ?? ""}></view-try>`,
  },
};

const THEMES = ["auto", "light", "dark"];

/** The view, the id and the query of an address such as `#/run/prices?at=3`. */
function place() {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [view = "", ...rest] = path.split("/");
  return { view: view || "inbox", id: decodeURIComponent(rest.join("/")), query: new URLSearchParams(query) };
}

class App extends LitElement {
  static properties = {
    me: { state: true },
    asking: { state: true },
    problem: { state: true },
    claims: { state: true },
    at: { state: true },
    waiting: { state: true },
    live: { state: true },
    theme: { state: true },
    ready: { state: true },
  };

  static styles = [
    shared,
    css`
      :host { min-height: 100vh; display: flex; flex-direction: column; }
      header { border-bottom: 1px solid var(--line); background: var(--surface); }
      .bar { display: flex; flex-wrap: wrap; align-items: center; gap: 0.25rem 1.25rem; padding: 0.5rem 1.25rem; max-width: 1500px; margin: 0 auto; }
      nav ul { display: flex; flex-wrap: wrap; gap: 0.25rem; }
      nav a { display: block; padding: 0.3rem 0.65rem; border-radius: 6px; text-decoration: none; color: var(--text); }
      nav a:hover { background: var(--line); }
      nav a[aria-current] { font-weight: 650; box-shadow: inset 0 -2px 0 var(--accent); border-radius: 0; }
      .brand { display: flex; align-items: center; gap: 0.5rem; font-weight: 650; color: var(--text); text-decoration: none; }
      .brand img { width: 22px; height: 22px; }
      .badge { background: var(--accent); color: var(--on-accent); border-radius: 99px; padding: 0 0.45rem; font-size: 0.8rem; font-weight: 650; }
      main { flex: 1; width: 100%; max-width: 1500px; margin: 0 auto; padding: 1.25rem; min-width: 0; }
      main:focus { outline: none; }
      .skip { position: absolute; left: -999rem; }
      .skip:focus { left: 0.5rem; top: 0.5rem; background: var(--bg); padding: 0.5rem; z-index: 3; }
      .who { margin-left: auto; }
      .lost { background: var(--warn-bg); color: var(--warn); padding: 0.3rem 1.25rem; text-align: center; }
      .login { max-width: 26rem; margin: 8vh auto; padding: 1.5rem; display: grid; gap: 1rem; }
      .login input { width: 100%; }
      dialog { border: 1px solid var(--strong-line); border-radius: 10px; background: var(--bg); color: var(--text); padding: 1.25rem 1.5rem; max-width: min(34rem, 92vw); }
      dialog::backdrop { background: rgb(0 0 0 / 0.45); }
      kbd { font: inherit; font-family: var(--mono); font-size: 0.85rem; border: 1px solid var(--strong-line); border-bottom-width: 2px; border-radius: 4px; padding: 0 0.35rem; }
      dialog dl { grid-template-columns: max-content 1fr; margin: 0.75rem 0 1rem; }
      @media (max-width: 40rem) {
        .bar { padding: 0.4rem 0.75rem; }
        main { padding: 0.75rem; }
        .who { margin-left: 0; }
      }
      @media print {
        header, .lost { display: none; }
        main { padding: 0; }
      }
    `,
  ];

  constructor() {
    super();
    /** @type {any} */
    this.me = null;
    this.asking = true;
    /** @type {import("./lib/api.js").Problem | null} */
    this.problem = null;
    /** Whether names are claimed at this server: it has no keys. */
    this.claims = false;
    this.at = place();
    this.waiting = 0;
    this.live = "connecting";
    this.ready = false;
    this.theme = localStorage.getItem("charter-theme") ?? "auto";
    /** @type {string | null} */
    this.first = null;
    this.inbox = inboxOf(own);
  }

  connectedCallback() {
    super.connectedCallback();
    this.#wear(this.theme);
    addEventListener("hashchange", () => this.#go());
    addEventListener("keydown", (event) => this.#key(event));
    own.addEventListener("signed-out", (event) => {
      this.me = null;
      this.problem = /** @type {CustomEvent} */ (event).detail;
    });
    this.inbox.addEventListener("change", () => this.#count());
    this.inbox.addEventListener("arrived", (event) => this.#notify(/** @type {CustomEvent} */ (event).detail));
    journalOf(own).addEventListener("state", (event) => (this.live = /** @type {CustomEvent} */ (event).detail));
    this.inbox.use();
    this.#begin();
  }

  async #begin() {
    const code = /^#login=(.+)$/.exec(location.hash)?.[1];
    if (code) history.replaceState(null, "", "#/inbox");
    try {
      own.as = sessionStorage.getItem("charter-as");
      this.me = code ? await own.signInWithCode(decodeURIComponent(code)) : await own.whoami();
    } catch (error) {
      this.#rejected(error, Boolean(code));
    }
    this.asking = false;
    this.#go();
  }

  /** @param {unknown} error @param {boolean} show */
  #rejected(error, show) {
    const problem = problemOf(error);
    this.claims = problem.body.claim === true || this.claims;
    if (this.claims) own.as = null;
    this.problem = show || problem.status !== 401 ? problem : null;
  }

  async #go() {
    this.at = place();
    const view = VIEWS[this.at.view];
    this.#title();
    if (!this.me || !view) return;
    this.ready = false;
    try {
      await view.load();
      this.ready = true;
    } catch (error) {
      this.problem = problemOf(error);
    }
  }

  #title() {
    const title = VIEWS[this.at.view]?.title ?? "Nothing here";
    document.title = `${this.waiting ? `(${this.waiting}) ` : ""}${this.at.id || title} · Charter`;
  }

  #count() {
    this.waiting = this.inbox.mine.length;
    this.#title();
    if ("setAppBadge" in navigator) navigator.setAppBadge(this.waiting).catch(() => {});
  }

  /** One notice, however many have arrived. @param {any[]} requests */
  #notify(requests) {
    if (!requests.length || !document.hidden || !("Notification" in window) || Notification.permission !== "granted") return;
    const [first] = requests;
    const body = requests.length === 1 ? `${first.charter.title ?? first.charter.id}: ${first.run}` : `${requests.length} requests wait for you`;
    const notice = new Notification("Charter", { body, tag: "charter-inbox" });
    notice.onclick = () => (window.focus(), (location.hash = "#/inbox"));
  }

  /** @param {string} theme */
  #wear(theme) {
    this.theme = THEMES.includes(theme) ? theme : "auto";
    if (this.theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.theme;
    localStorage.setItem("charter-theme", this.theme);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey || !this.me) return;
    const first = this.first;
    this.first = null;
    if (event.key === "?") {
      event.preventDefault();
      this.#help();
    } else if (first === "g") {
      const view = Object.entries(VIEWS).find(([, view]) => view.key === event.key);
      // `j` alone is for lists.
      event.stopImmediatePropagation();
      if (view) location.hash = `#/${view[0]}`;
    } else if (event.key === "g") {
      this.first = "g";
    }
  }

  #help() {
    /** @type {HTMLDialogElement | null | undefined} */
    const dialog = this.renderRoot.querySelector("dialog");
    if (dialog?.open) dialog.close();
    else dialog?.showModal();
  }

  /** @param {SubmitEvent} event */
  async #signIn(event) {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    const text = String(new FormData(form).get("secret")).trim();
    if (!text) return;
    this.asking = true;
    this.problem = null;
    try {
      if (this.claims) {
        own.as = text;
        this.me = await own.whoami();
        sessionStorage.setItem("charter-as", text);
      } else {
        this.me = await own.signIn(text);
      }
    } catch (error) {
      this.#rejected(error, true);
    }
    this.asking = false;
    this.#go();
  }

  async #signOut() {
    sessionStorage.removeItem("charter-as");
    try {
      await own.signOut();
    } catch (error) {
      this.problem = problemOf(error);
    }
  }

  #login() {
    const label = this.claims ? "Your name" : "Your key";
    return html`<main class="grow">
      <form class="card login" @submit=${this.#signIn}>
        <h1>Sign in to Charter</h1>
        ${this.problem ? html`<p class="note bad" role="alert">${this.problem.detail}</p>` : nothing}
        <label>
          ${label}
          <input name="secret" type=${this.claims ? "text" : "password"} autocomplete=${this.claims ? "username" : "current-password"} required autofocus />
        </label>
        <p class="small faint">
          ${this.claims
            ? "This server has no keys, so names are claimed and no approval counts. Add a key with “charter key add NAME --role ROLE”."
            : "The key begins with chk_. It is exchanged for a session and not kept by this page."}
        </p>
        <button class="main" ?disabled=${this.asking}>${this.asking ? "Signing in…" : "Sign in"}</button>
      </form>
    </main>`;
  }

  #keys() {
    return html`<dialog aria-labelledby="keys">
      <h2 id="keys">Keys</h2>
      <dl class="facts">
        ${Object.values(VIEWS)
          .filter((view) => view.key)
          .map((view) => html`<dt><kbd>g</kbd> <kbd>${view.key}</kbd></dt><dd>${view.title}</dd>`)}
        <dt><kbd>j</kbd> <kbd>k</kbd></dt><dd>Next, previous entry of a list</dd>
        <dt><kbd>Enter</kbd></dt><dd>Open it</dd>
        <dt><kbd>Esc</kbd></dt><dd>Close</dd>
        <dt><kbd>?</kbd></dt><dd>These keys</dd>
      </dl>
      <form method="dialog"><button>Close</button></form>
    </dialog>`;
  }

  render() {
    if (!this.me) return this.asking ? html`<main aria-busy="true"><p class="faint">Charter</p></main>` : this.#login();
    const view = VIEWS[this.at.view];
    const heard = journalOf(own).heard;
    return html`
      <header>
        <button class="skip" @click=${this.#skip}>Skip to the content</button>
        <div class="bar">
          <a class="brand" href="#/inbox"><img src="/page/icon.svg" alt="" />Charter</a>
          <nav aria-label="Views">
            <ul>
              ${Object.entries(VIEWS)
                .filter(([, view]) => view.key)
                .map(
                  ([name, { title }]) => html`<li>
                    <a href="#/${name}" aria-current=${this.at.view === name ? "page" : nothing}
                      >${title}${name === "inbox" && this.waiting
                        ? html` <span class="badge">${this.waiting}<span class="sr"> waiting</span></span>`
                        : nothing}</a
                    >
                  </li>`,
                )}
            </ul>
          </nav>
          <div class="row who small">
            <span title=${`${this.me.kind}, signed in by ${this.me.auth}`}>${this.me.id}</span>
            <label class="row"
              ><span class="sr">Colors</span>
              <select @change=${(/** @type {any} */ e) => this.#wear(e.target.value)} .value=${this.theme}>
                ${THEMES.map((theme) => html`<option value=${theme} ?selected=${theme === this.theme}>${theme}</option>`)}
              </select></label
            >
            <button class="plain" @click=${this.#help} aria-label="Keys">?</button>
            <button class="plain" @click=${this.#signOut}>Sign out</button>
          </div>
        </div>
      </header>
      <div role="status">
        ${this.live === "lost"
          ? html`<p class="lost">Connection lost. Shown as of ${heard ? clock(heard) : "the start"}; trying again.</p>`
          : nothing}
      </div>
      <main id="main" tabindex="-1">
        ${this.problem ? html`<p class="note bad" role="alert">${this.problem.detail}</p>` : nothing}
        ${view
          ? this.ready
            ? view.draw(this.at.id, this.at.query)
            : html`<p class="faint" aria-busy="true">Loading…</p>`
          : html`<h1>There is nothing at this address</h1><p><a href="#/inbox">Go to the inbox</a></p>`}
      </main>
      ${this.#keys()}
    `;
  }

  #skip() {
    /** @type {HTMLElement | null} */ (this.renderRoot.querySelector("#main"))?.focus();
  }
}

customElements.define("charter-app", App);
