// The view Journal: how much is in it, its head, what cannot go on, its hashes, computed again here, and queries.
import { css, html, nothing } from "../lit.js";
import { problemOf } from "../lib/api.js";
import { Component } from "../lib/base.js";
import { ago, bytes, clock, count, until } from "../lib/format.js";
import { journalOf } from "../lib/live.js";
import { shared } from "../lib/style.js";
import { visible as show } from "../lib/text.js";
import { verifyRun } from "../lib/verify.js";

const SETTLE_MS = 1_000;
/** When this browser verified the hashes, and how many. */
const VERIFIED = "charter-verified";

class ViewJournal extends Component {
  static properties = {
    runs: { state: true },
    more: { state: true },
    checked: { state: true },
    wrong: { state: true },
    working: { state: true },
    problem: { state: true },
    seen: { state: true },
    verified: { state: true },
    whole: { state: true },
  };

  static styles = [
    shared,
    css`
      :host { display: grid; gap: 1.25rem; grid-template-columns: minmax(0, 1fr); }
      section { display: grid; gap: 0.5rem; }
      .numbers { display: flex; flex-wrap: wrap; gap: 0.75rem; }
      .numbers div { padding: 0.7rem 1rem; min-width: 8rem; }
      .hash { font-family: var(--mono); font-size: 0.84rem; overflow-wrap: anywhere; }
      .numbers strong { display: block; font-size: 1.4rem; font-weight: 650; font-variant-numeric: tabular-nums; }
    `,
  ];

  constructor() {
    super();
    /** @type {any[] | null} */
    this.runs = null;
    this.more = false;
    /** @type {{runs: number, records: number} | null} */
    this.checked = null;
    /** @type {{run: string, wrong: string}[]} */
    this.wrong = [];
    this.working = false;
    /** @type {import("../lib/api.js").Problem | null} */
    this.problem = null;
    /** Records since the page was opened. */
    this.seen = 0;
    /** @type {{at: string, records: number, runs: number} | null} */
    this.verified = null;
    /** The journal as a whole; `null` if it is not known, or not for the caller. @type {any} */
    this.whole = null;
    this.timer = 0;
    try {
      this.verified = JSON.parse(localStorage.getItem(VERIFIED) ?? "null");
    } catch {
      // Something else has that name.
    }
  }

  connectedCallback() {
    super.connectedCallback();
    const journal = journalOf(this.api);
    this.ends.push(journal.use());
    this.listen(journal, "record", ({ detail }) => this.#note(detail));
    this.listen(journal, "state", ({ detail }) => detail === "live" && this.#load());
    this.ends.push(() => clearTimeout(this.timer));
    this.#load();
  }

  /** What a record changes in the list: more of its run is read, since it may have set a timer. @param {any} record */
  #note(record) {
    this.seen += 1;
    const { run, seq, hash, at: updated } = record;
    this.runs = this.runs && this.runs.map((known) => (known.run === run && known.seq < seq ? { ...known, seq, hash, updated } : known));
    if (this.timer) return;
    this.timer = window.setTimeout(() => ((this.timer = 0), this.#load()), SETTLE_MS);
  }

  async #load() {
    try {
      /** @type {{runs: any[], after?: string}} */
      const first = await this.api.get("/v1/runs?limit=100&state=true");
      let { runs, after } = first;
      for (let pages = 1; after && pages < 20; pages++) {
        /** @type {{runs: any[], after?: string}} */
        const next = await this.api.get(`/v1/runs?limit=100&state=true&after=${encodeURIComponent(after)}`);
        runs = [...runs, ...next.runs];
        after = next.after;
      }
      this.runs = runs;
      this.more = Boolean(after);
      const { roles } = this.api.me ?? (await this.api.whoami());
      const sees = !roles || roles.includes("admin") || roles.includes("reader");
      this.whole = sees ? await this.api.get("/v1/journal") : null;
      if (this.whole?.sql) await import("../components/charter-sql.js");
      this.problem = null;
    } catch (error) {
      this.problem = problemOf(error);
    }
  }

  async #verify() {
    if (this.working) return;
    this.working = true;
    this.wrong = [];
    this.checked = { runs: 0, records: 0 };
    try {
      if (!globalThis.crypto?.subtle) throw new Error("Browsers compute hashes only on https, or on this machine.");
      for (const { run } of this.runs ?? []) {
        /** @type {{runs: number, records: number}} */
        const before = this.checked ?? { runs: 0, records: 0 };
        const found = await verifyRun(this.api, run, (count) => (this.checked = { ...before, records: before.records + count }));
        if (found.wrong) this.wrong = [...this.wrong, { run, wrong: found.wrong }];
        this.checked = { runs: before.runs + 1, records: before.records + found.count };
      }
      if (!this.wrong.length) {
        this.verified = { at: new Date().toISOString(), ...this.checked };
        localStorage.setItem(VERIFIED, JSON.stringify(this.verified));
      }
    } catch (error) {
      this.problem = problemOf(error);
    }
    this.working = false;
  }

  render() {
    /** @type {any[]} */
    const runs = this.runs ?? [];
    const stuck = runs.filter((run) => run.stuck);
    const records = runs.reduce((sum, run) => sum + run.seq + 1, 0);
    const active = runs.filter((run) => run.status === "active").length;
    const number = (/** @type {number} */ n, /** @type {string} */ label) => html`<div class="card"><strong>${n.toLocaleString("en")}${this.more ? "+" : ""}</strong>${label}</div>`;
    const done = this.checked && !this.working;
    const last = runs.reduce((found, run) => (found && found.updated >= run.updated ? found : run), null);
    const overdue = runs.filter((run) => run.status === "active" && run.next_due && Date.parse(run.next_due) < this.now).sort((a, b) => (a.next_due < b.next_due ? -1 : 1));
    const link = (/** @type {any} */ run, /** @type {number | null} */ at = null) =>
      html`<a href=${`#/run/${encodeURIComponent(run.run)}${at === null ? "" : `?at=${at}`}`}>${show(run.run)}</a>`;
    return html`
      <h1>Journal</h1>
      ${this.problem ? html`<p class="note bad" role="alert">${show(this.problem.detail)}</p>` : nothing}
      ${this.runs
        ? html`<div class="numbers">${number(runs.length, "runs that you may see")} ${number(active, "active")} ${number(records, "records")}
            ${number(this.seen, "records since you came")}</div>`
        : html`<p class="faint" aria-busy="true">Loading…</p>`}
      ${this.whole
        ? html`<section>
            <h2>Head</h2>
            <p class="faint small">It changes with every record of any run. Keep it elsewhere: <code>charter verify --anchor</code> then finds what was changed or removed before it.</p>
            <dl class="facts">
              ${this.whole.head
                ? html`<dt>Contains</dt><dd>${count(this.whole.head.records, "record")} of ${count(this.whole.head.runs, "run")}, ever written</dd>
                    <dt>Entries</dt><dd>${this.whole.head.entries.toLocaleString("en")}</dd>
                    <dt>Hash</dt><dd class="hash head">${this.whole.head.hash.replace("sha256:", "")}</dd>`
                : html`<dt>Head</dt><dd class="faint">This host keeps none.</dd>`}
              ${this.whole.bytes === null ? nothing : html`<dt>Size</dt><dd>${bytes(this.whole.bytes)}</dd>`}
            </dl>
          </section>`
        : nothing}
      ${last
        ? html`<section>
            <h2>Last record</h2>
            <dl class="facts">
              <dt>Record</dt><dd>${last.seq} of ${link(last, last.seq)} <span class="faint">(${show(last.charter.id)})</span></dd>
              <dt>Came</dt><dd>${ago(last.updated, this.now)} <span class="faint">(${clock(last.updated)})</span></dd>
              <dt>Hash</dt><dd class="hash">${last.hash.replace("sha256:", "")}</dd>
            </dl>
          </section>`
        : nothing}
      <section>
        <h2>Overdue</h2>
        ${overdue.length
          ? html`<ul>${overdue.map((run) => html`<li>${link(run)}
              <span class="faint">${show(run.charter.id)}, in ${show((run.state ?? []).join(", "))}: a timer is ${until(run.next_due, this.now)} (${clock(run.next_due)})</span></li>`)}</ul>`
          : html`<p class="faint">${this.runs ? "No timer is overdue." : ""}</p>`}
      </section>
      <section>
        <h2>Cannot go on</h2>
        ${stuck.length
          ? html`<ul>${stuck.map((run) => html`<li>${link(run)}
              <span class="faint">${show(run.charter.id)}, in ${show(run.state.join(", "))}, since ${ago(run.updated, this.now)}</span></li>`)}</ul>`
          : html`<p class="faint">${this.runs ? "Nothing." : ""}</p>`}
      </section>
      <section>
        <h2>Hashes</h2>
        <p>Each record holds the hash of the one before it. This browser can compute them again from the records that it gets. What the
          hashes cannot say, whether the kernel gives these records, is checked by <code>charter verify</code>.</p>
        <div class="row">
          <button ?disabled=${this.working || !this.runs} @click=${this.#verify}>${this.working ? "Verifying…" : "Verify the hashes"}</button>
          <span role="status">
            ${this.checked ? `${count(this.checked.records, "record")} of ${count(this.checked.runs, "run")}` : ""}${done && !this.wrong.length && !this.problem ? ": all hashes are right." : ""}
          </span>
        </div>
        ${this.verified && !this.checked
          ? html`<p class="faint small">Verified in this browser ${ago(this.verified.at, this.now)}: ${count(this.verified.records, "record")} of ${count(this.verified.runs, "run")}.</p>`
          : nothing}
        ${this.wrong.map(({ run, wrong }) => html`<p class="note bad" role="alert">Run ${show(run)}: ${wrong}.</p>`)}
      </section>
      ${this.whole?.sql
        ? html`<section>
            <h2>Queries</h2>
            <p class="faint small">One SQL statement that only reads, over everything in the journal; at most 1,000 rows and 10 s. <kbd>Ctrl</kbd>+<kbd>Enter</kbd> runs it.</p>
            <charter-sql></charter-sql>
          </section>`
        : nothing}
    `;
  }
}

customElements.define("view-journal", ViewJournal);
