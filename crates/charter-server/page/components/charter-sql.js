// Queries over the journal, in SQL: saved ones, and one's own. For administrators.
import { css, html, nothing } from "../lit.js";
import { problemOf } from "../lib/api.js";
import { Component } from "../lib/base.js";
import { count } from "../lib/format.js";
import { shared } from "../lib/style.js";
import { visible as show } from "../lib/text.js";

/** The queries that this browser has saved. */
const SAVED = "charter-queries";
const MAX_SAVED = 50;

/** Queries that everybody has. */
export const QUERIES = [
  {
    name: "Who was refused what, and with which code?",
    query: "SELECT by, type, code, count(*) AS times\n  FROM refusals GROUP BY by, type, code ORDER BY times DESC LIMIT 100",
  },
  {
    name: "Which invocations wait for an answer, and since when?",
    query: "SELECT e.run, e.src, r.at FROM effects e JOIN records r USING (run, seq)\n  WHERE e.status = 'open' ORDER BY r.at LIMIT 100",
  },
  {
    name: "How often was each transition taken?",
    query: "SELECT transition, count(*) AS times FROM transitions GROUP BY transition ORDER BY times DESC LIMIT 100",
  },
  {
    name: "Who approved what?",
    query: "SELECT * FROM approvals ORDER BY run, seq LIMIT 100",
  },
  {
    name: "Runs that stand still the longest",
    query: "SELECT run, status, seq, updated FROM runs WHERE status IN ('active', 'paused')\n  ORDER BY updated LIMIT 100",
  },
  {
    name: "The longest runs",
    query: "SELECT run, status, seq + 1 AS records, started, updated FROM runs ORDER BY seq DESC LIMIT 100",
  },
];

/** The queries that were saved here. @returns {{name: string, query: string}[]} */
function saved() {
  try {
    const found = JSON.parse(localStorage.getItem(SAVED) ?? "[]");
    const fits = (/** @type {any} */ one) => typeof one?.name === "string" && typeof one?.query === "string";
    return Array.isArray(found) ? found.filter(fits).slice(0, MAX_SAVED) : [];
  } catch {
    // Something else has that name.
    return [];
  }
}

/** A value in a cell. @param {any} value */
function cell(value) {
  if (value === null) return html`<td class="faint">null</td>`;
  if (typeof value === "number") return html`<td class="number">${value}</td>`;
  return html`<td>${show(value)}</td>`;
}

class CharterSql extends Component {
  static properties = {
    query: { state: true },
    mine: { state: true },
    found: { state: true },
    working: { state: true },
    problem: { state: true },
    naming: { state: true },
  };

  static styles = [
    shared,
    css`
      :host { display: grid; gap: 0.6rem; grid-template-columns: minmax(0, 1fr); }
      select { width: 100%; }
      .table { overflow: auto; max-height: 32rem; border: 1px solid var(--line); border-radius: 6px; }
      table { border-collapse: collapse; font-size: 0.86rem; }
      th, td { text-align: left; padding: 0.25rem 0.6rem; border-bottom: 1px solid var(--line); vertical-align: top; max-width: 32rem; overflow-wrap: anywhere; }
      th { position: sticky; top: 0; background: var(--surface); }
      td.number { text-align: right; font-variant-numeric: tabular-nums; }
    `,
  ];

  constructor() {
    super();
    this.query = QUERIES[0]?.query ?? "";
    this.mine = saved();
    /** @type {{columns: string[], rows: any[][], more: boolean, ms: number} | null} */
    this.found = null;
    this.working = false;
    /** @type {import("../lib/api.js").Problem | null} */
    this.problem = null;
    this.naming = false;
  }

  async #run() {
    if (this.working || !this.query.trim()) return;
    this.working = true;
    const began = performance.now();
    try {
      const found = await this.api.post("/v1/sql", { query: this.query });
      this.found = { ...found, ms: performance.now() - began };
      this.problem = null;
    } catch (error) {
      this.problem = problemOf(error);
      this.found = null;
    }
    this.working = false;
  }

  /** @param {Event} event */
  #choose(event) {
    const { value } = /** @type {HTMLSelectElement} */ (event.target);
    const all = [...QUERIES, ...this.mine];
    const one = all[Number(value)];
    if (value !== "" && one) {
      this.query = one.query;
      this.found = null;
      this.problem = null;
    }
  }

  /** @param {Event} event */
  #save(event) {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    const name = String(new FormData(form).get("name") ?? "").trim();
    if (!name) return;
    this.#keep([{ name, query: this.query }, ...this.mine.filter((known) => known.name !== name)].slice(0, MAX_SAVED));
    this.naming = false;
  }

  /** @param {{name: string, query: string}[]} mine */
  #keep(mine) {
    this.mine = mine;
    try {
      localStorage.setItem(SAVED, JSON.stringify(mine));
    } catch {
      // It stays until the page is closed.
    }
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.#run();
    }
  }

  render() {
    const { found } = this;
    const all = [...QUERIES, ...this.mine];
    const at = all.findIndex((one) => one.query === this.query);
    const own = at >= QUERIES.length ? this.mine[at - QUERIES.length] : null;
    const option = (/** @type {{name: string}} */ one, /** @type {number} */ i) => html`<option value=${i} .selected=${i === at}>${one.name}</option>`;
    return html`
      <label>Saved queries
        <select @change=${this.#choose}>
          <option value="" .selected=${at < 0}>A query of your own</option>
          <optgroup label="For everybody">${QUERIES.map(option)}</optgroup>
          ${this.mine.length ? html`<optgroup label="Saved in this browser">${this.mine.map((one, i) => option(one, i + QUERIES.length))}</optgroup>` : nothing}
        </select>
      </label>
      <label>Query
        <textarea spellcheck="false" maxlength="65536" rows="5" .value=${this.query} @keydown=${this.#key}
          @input=${(/** @type {any} */ event) => (this.query = event.target.value)}></textarea>
      </label>
      <div class="row">
        <button class="main" ?disabled=${this.working || !this.query.trim()} @click=${this.#run}>${this.working ? "Working…" : "Run the query"}</button>
        ${own
          ? html`<button @click=${() => this.#keep(this.mine.filter((one) => one !== own))}>Forget this query</button>`
          : at < 0 && !this.naming
            ? html`<button @click=${() => (this.naming = true)}>Save this query…</button>`
            : nothing}
        <span role="status" class="faint small">${found ? `${count(found.rows.length, "row")}${found.more ? ", and there are more" : ""}, in ${Math.round(found.ms)} ms` : ""}</span>
      </div>
      ${this.naming
        ? html`<form class="row" @submit=${this.#save}>
            <label>Name <input name="name" maxlength="100" required autocomplete="off"></label>
            <button>Save</button>
            <button type="button" class="plain" @click=${() => (this.naming = false)}>Cancel</button>
          </form>`
        : nothing}
      ${this.problem ? html`<p class="note bad wrap" role="alert">${show(this.problem.detail)}</p>` : nothing}
      ${found && found.columns.length
        ? html`<div class="table" tabindex="0" role="region" aria-label="Rows">
            <table>
              <thead><tr>${found.columns.map((name) => html`<th scope="col">${show(name)}</th>`)}</tr></thead>
              <tbody>${found.rows.map((row) => html`<tr>${row.map(cell)}</tr>`)}</tbody>
            </table>
          </div>`
        : nothing}
    `;
  }
}

customElements.define("charter-sql", CharterSql);
