// `<charter-runs>`: the runs that the caller may see, with filters, live.
import { css, html, nothing, repeat } from "../lit.js";
import { problemOf } from "../lib/api.js";
import { Component, isTyping } from "../lib/base.js";
import { ago, clock, count, words } from "../lib/format.js";
import { errorsOf, formFor } from "../lib/form.js";
import { charterOf } from "../lib/charter.js";
import { journalOf } from "../lib/live.js";
import { visible as show } from "../lib/text.js";
import { shared } from "../lib/style.js";

const PAGE = 100;
const STATUSES = ["active", "paused", "done", "failed", "cancelled"];
const SETTLE_MS = 400;
/** Refusals of this time are counted. */
const LATELY_MS = 15 * 60_000;

/** The class of the label of a status. @param {string} status @param {boolean} [stuck] */
export const tone = (status, stuck = false) => (stuck || status === "failed" ? "bad" : status === "done" ? "good" : status === "paused" ? "warn" : "");

export class CharterRuns extends Component {
  static properties = {
    charter: { type: String },
    status: { type: String },
    stuck: { type: Boolean },
    text: { type: String },
    runs: { state: true },
    charters: { state: true },
    more: { state: true },
    problem: { state: true },
    refusals: { state: true },
    loading: { state: true },
    starting: { state: true },
    starts: { state: true },
    form: { state: true },
  };

  static styles = [
    shared,
    css`
      .filters { display: flex; flex-wrap: wrap; gap: 0.5rem; margin: 0.75rem 0 1rem; align-items: center; }
      .filters input[type="search"] { flex: 1 1 12rem; max-width: 22rem; }
      .filters label { display: flex; gap: 0.35rem; align-items: center; }
      table { width: 100%; border-collapse: collapse; }
      th { text-align: left; font-weight: 600; color: var(--faint); font-size: 0.87rem; padding: 0.3rem 0.6rem; border-bottom: 1px solid var(--line); }
      td { padding: 0.5rem 0.6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
      tbody tr:hover { background: var(--surface); }
      td:first-child { min-width: 9rem; overflow-wrap: anywhere; }
      .number { text-align: right; font-variant-numeric: tabular-nums; }
      .start { display: grid; gap: 0.8rem; padding: 1rem; margin-bottom: 1rem; max-width: 40rem; }
      .empty { padding: 3rem 1rem; text-align: center; }
      @media (max-width: 44rem) {
        thead { position: absolute; clip-path: inset(50%); }
        tr { display: grid; grid-template-columns: 1fr max-content; border-bottom: 1px solid var(--line); padding: 0.4rem 0; }
        td { border: 0; padding: 0.1rem 0.25rem; }
        .optional { display: none; }
      }
    `,
  ];

  constructor() {
    super();
    this.charter = "";
    this.status = "";
    this.stuck = false;
    this.text = "";
    /** @type {any[] | null} */
    this.runs = null;
    /** @type {any[]} */
    this.charters = [];
    /** @type {string | null} */
    this.more = null;
    /** @type {import("../lib/api.js").Problem | null} */
    this.problem = null;
    /** When events were refused lately, by run. @type {{run: string, at: number}[]} */
    this.refusals = [];
    this.loading = false;
    this.starting = false;
    /** The charter that a run is started of. */
    this.starts = "";
    /** The form of its input. @type {import("./charter-form.js").CharterForm | null} */
    this.form = null;
    this.timer = 0;
    this.asked = 0;
  }

  connectedCallback() {
    super.connectedCallback();
    const journal = journalOf(this.api);
    this.ends.push(journal.use());
    this.listen(journal, "record", ({ detail }) => this.#note(detail));
    this.listen(journal, "state", ({ detail }) => detail === "live" && this.#load());
    this.listen(journal, "reset", () => this.#load());
    this.listen(window, "keydown", (event) => this.#key(event));
    this.api.get("/v1/charters").then((body) => (this.charters = body.charters), () => {});
  }

  /** @param {Map<string, any>} changed */
  willUpdate(changed) {
    if (["charter", "status", "stuck", "client", "server"].some((name) => changed.has(name))) this.#load();
  }

  /** @param {string | null} after */
  #path(after) {
    const query = new URLSearchParams({ limit: String(PAGE), state: "true" });
    if (this.charter) query.set("charter", this.charter);
    if (this.status) query.set("status", this.status);
    if (this.stuck) query.set("stuck", "true");
    if (after) query.set("after", after);
    return `/v1/runs?${query}`;
  }

  async #load(after = /** @type {string | null} */ (null)) {
    const asked = ++this.asked;
    this.loading = true;
    try {
      // What is shown already is read again whole, page by page.
      const wanted = after ? 0 : (this.runs?.length ?? 0);
      let body = await this.api.get(this.#path(after));
      let runs = body.runs;
      while (body.after && runs.length < wanted) {
        body = await this.api.get(this.#path(body.after));
        runs = [...runs, ...body.runs];
      }
      if (asked !== this.asked) return;
      this.runs = after ? [...(this.runs ?? []), ...runs] : runs;
      this.more = body.after ?? null;
      this.problem = null;
    } catch (error) {
      if (asked === this.asked) this.problem = problemOf(error);
    }
    this.loading = false;
  }

  /** A record has arrived: its run is changed in place; a new run, or one that leaves the filter, needs the list. @param {any} record */
  #note(record) {
    const now = Date.now();
    if (record.verdict === "refused") this.refusals = [...this.refusals.filter(({ at }) => at > now - LATELY_MS), { run: record.run, at: now }].slice(-500);
    const known = this.runs?.find((run) => run.run === record.run);
    if (known && known.status === record.status && !this.stuck) {
      this.runs = (this.runs ?? []).map((run) => (run === known ? { ...run, seq: Math.max(run.seq, record.seq), updated: record.at, state: record.to === "root" ? record.state : run.state } : run));
    } else if (!this.timer) {
      this.timer = window.setTimeout(() => ((this.timer = 0), this.#load()), SETTLE_MS);
    }
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey || !["j", "k"].includes(event.key)) return;
    const links = /** @type {HTMLElement[]} */ ([...this.renderRoot.querySelectorAll("td a")]);
    const at = links.indexOf(/** @type {HTMLElement} */ (/** @type {ShadowRoot} */ (this.renderRoot).activeElement));
    links[event.key === "j" ? Math.min(at + 1, links.length - 1) : Math.max(0, at - 1)]?.focus();
  }

  /** The filters are in the address. @param {Record<string, any>} change */
  #filter(change) {
    Object.assign(this, change);
    const query = new URLSearchParams();
    if (this.charter) query.set("charter", this.charter);
    if (this.status) query.set("status", this.status);
    if (this.stuck) query.set("stuck", "1");
    if (this.text) query.set("text", this.text);
    if (location.hash.startsWith("#/runs")) history.replaceState(null, "", `#/runs${query.size ? `?${query}` : ""}`);
  }

  /** Shows the form of the input of a charter. @param {string} id */
  async #choose(id) {
    this.starts = id;
    this.form = null;
    if (!id) return;
    try {
      const { input } = await charterOf(this.api, id);
      if (this.starts !== id) return;
      // Without a schema, any input is fine, and none is needed.
      const schema = input ?? { type: "object", additionalProperties: true };
      this.form = formFor(schema, { label: "Start" });
      this.form.addEventListener("submit", (event) => (event.stopPropagation(), this.#start(/** @type {any} */ (event).detail)));
    } catch (error) {
      this.problem = problemOf(error);
    }
  }

  /** @param {any} input */
  async #start(input) {
    const run = /** @type {HTMLInputElement | null} */ (this.renderRoot.querySelector("input[name=run]"))?.value.trim();
    this.problem = null;
    if (this.form) this.form.busy = true;
    try {
      const record = await this.api.post("/v1/runs", { charter: this.starts, input, ...(run ? { run } : {}) });
      this.starting = false;
      location.hash = `#/run/${encodeURIComponent(record.run)}`;
    } catch (error) {
      this.problem = problemOf(error);
      this.form?.showErrors(errorsOf(this.problem.body));
    }
    if (this.form) this.form.busy = false;
  }

  #startForm() {
    return html`<div class="card start">
      <h2>Start a run</h2>
      <label>Charter
        <select @change=${(/** @type {any} */ e) => this.#choose(e.target.value)}>
          <option value="">choose one</option>
          ${this.charters.map((c) => html`<option value=${c.id} ?selected=${c.id === this.starts}>${c.id}${c.title ? ` – ${c.title}` : ""}</option>`)}
        </select>
      </label>
      <label>Id <span class="small faint">(a new one if empty)</span> <input name="run" maxlength="200" /></label>
      ${this.form ?? nothing}
      <div><button class="plain" @click=${() => (this.starting = false)}>Cancel</button></div>
    </div>`;
  }

  render() {
    const text = this.text.trim().toLowerCase();
    const all = this.runs ?? [];
    const runs = text ? all.filter((run) => `${run.run} ${run.charter.id} ${run.status} ${run.state ?? ""}`.toLowerCase().includes(text)) : all;
    const lately = this.refusals.filter(({ at }) => at > this.now - LATELY_MS);
    return html`
      <div class="row">
        <h1>Runs</h1>
        <span class="faint" role="status">
          ${this.runs ? `${count(runs.length, "run")}${this.more ? " so far" : ""}` : "loading…"}${lately.length
            ? `, ${count(lately.length, "refusal")} since you opened this page`
            : ""}
        </span>
        <span class="grow"></span>
        <button @click=${() => ((this.starting = !this.starting), this.starting && this.charter && this.#choose(this.charter))} aria-expanded=${this.starting}>Start a run</button>
      </div>
      <div class="filters" role="search">
        <input type="search" aria-label="Text" placeholder="Id, charter, state" .value=${this.text} @input=${(/** @type {any} */ e) => this.#filter({ text: e.target.value })} />
        <select aria-label="Charter" @change=${(/** @type {any} */ e) => this.#filter({ charter: e.target.value })}>
          <option value="">all charters</option>
          ${this.charters.map((c) => html`<option value=${c.id} ?selected=${c.id === this.charter}>${c.id}</option>`)}
        </select>
        <select aria-label="Status" @change=${(/** @type {any} */ e) => this.#filter({ status: e.target.value })}>
          <option value="">every status</option>
          ${STATUSES.map((status) => html`<option ?selected=${status === this.status}>${status}</option>`)}
        </select>
        <label><input type="checkbox" .checked=${this.stuck} @change=${(/** @type {any} */ e) => this.#filter({ stuck: e.target.checked })} /> stuck</label>
      </div>
      ${this.problem ? html`<p class="note bad" role="alert">${show(this.problem.detail)}</p>` : nothing}
      ${this.starting ? this.#startForm() : nothing}
      ${runs.length
        ? html`<table>
            <thead>
              <tr><th scope="col">Run</th><th scope="col">Charter</th><th scope="col">Status</th><th scope="col">State</th><th scope="col" class="number">Records</th><th scope="col">Changed</th></tr>
            </thead>
            <tbody>
              ${repeat(runs, (run) => run.run, (run) => {
                const refused = lately.filter((refusal) => refusal.run === run.run).length;
                return html`<tr>
                  <td><a href=${`#/run/${encodeURIComponent(run.run)}`}>${show(run.run)}</a></td>
                  <td class="optional">${show(run.charter.id)}</td>
                  <td><span class="tag ${tone(run.status, run.stuck)}">${run.stuck ? "Stuck" : words(run.status ?? "never started")}</span>
                    ${refused ? html`<span class="tag bad">${count(refused, "refusal")}</span>` : nothing}</td>
                  <td class="wrap">${show((run.state ?? []).join(", "))}</td>
                  <td class="number optional">${(run.seq + 1).toLocaleString("en")}</td>
                  <td class="faint optional" title=${clock(run.updated)}>${ago(run.updated, this.now)}</td>
                </tr>`;
              })}
            </tbody>
          </table>`
        : this.runs
          ? html`<div class="empty card"><h2>No run matches</h2><p class="faint">Start one, or change the filters.</p></div>`
          : nothing}
      ${this.more ? html`<p class="row"><button ?disabled=${this.loading} @click=${() => this.#load(this.more)}>Show more</button></p>` : nothing}
    `;
  }
}

customElements.define("charter-runs", CharterRuns);
