// The view Charters: what runs can be started of; and one charter: its chart, findings, events, roles, text.
import { css, html, nothing } from "../lit.js";
import { problemOf } from "../lib/api.js";
import { Component } from "../lib/base.js";
import { charterOf } from "../lib/charter.js";
import { count, short } from "../lib/format.js";
import { pictureOf, pictureStyles } from "../lib/picture.js";
import { shared } from "../lib/style.js";
import { visible as show } from "../lib/text.js";

/** Findings of `check` as a list. @param {any[]} findings */
export function findingsOf(findings) {
  return html`<ul class="findings">
    ${findings.map(
      (finding) => html`<li>
        <span class="tag ${finding.severity === "error" ? "bad" : finding.severity === "warning" ? "warn" : ""}">${finding.severity}</span>
        <span>${finding.line ? html`<span class="faint">line ${finding.line}</span> ` : nothing}${show(finding.message)}
          ${finding.code ? html`<a class="small" href=${`/codes/${finding.code}`} target="_blank" rel="noreferrer">${finding.code}</a>` : nothing}</span>
      </li>`,
    )}
  </ul>`;
}

export const findingStyles = css`
  .findings { display: grid; gap: 0.4rem; }
  .findings li { display: grid; grid-template-columns: 5rem minmax(0, 1fr); gap: 0.6rem; overflow-wrap: anywhere; }
  .findings .tag { justify-self: start; align-self: start; }
`;

class ViewCharters extends Component {
  static properties = {
    of: { type: String },
    charters: { state: true },
    charter: { state: true },
    picture: { state: true },
    runs: { state: true },
    report: { state: true },
    checking: { state: true },
    problem: { state: true },
  };

  static styles = [
    shared,
    pictureStyles,
    findingStyles,
    css`
      :host { display: grid; gap: 1rem; grid-template-columns: minmax(0, 1fr); }
      .cards { display: grid; gap: 0.75rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); }
      .cards a { display: block; padding: 0.8rem 1rem; color: var(--text); text-decoration: none; }
      .cards a:hover { background: var(--surface); border-radius: 10px; }
      .frame { overflow: auto; border: 1px solid var(--line); border-radius: 8px; max-height: 70vh; }
      section { display: grid; gap: 0.45rem; grid-template-columns: minmax(0, 1fr); }
      .source { max-height: 30rem; }
    `,
  ];

  constructor() {
    super();
    /** The id of a charter, or nothing. */
    this.of = "";
    /** @type {any[] | null} */
    this.charters = null;
    /** @type {any} */
    this.charter = null;
    /** @type {SVGElement | null} */
    this.picture = null;
    /** Runs by status. @type {Record<string, number> | null} */
    this.runs = null;
    /** @type {any} */
    this.report = null;
    this.checking = false;
    /** @type {import("../lib/api.js").Problem | null} */
    this.problem = null;
  }

  /** @param {Map<string, any>} changed */
  willUpdate(changed) {
    if (changed.has("of")) this.#load();
  }

  async #load() {
    this.problem = this.charter = this.picture = this.report = this.runs = null;
    const of = this.of;
    try {
      if (!of) {
        this.charters = (await this.api.get("/v1/charters")).charters;
        return;
      }
      const charter = await charterOf(this.api, of);
      if (this.of !== of) return;
      this.charter = charter;
      const path = `/v1/charters/${encodeURIComponent(of)}/graph.svg`;
      this.api.text(path).then((text) => this.of === of && (this.picture = pictureOf(text)), (error) => (this.problem = problemOf(error)));
      const { runs, after } = await this.api.get(`/v1/runs?limit=1000&charter=${encodeURIComponent(of)}`);
      /** @type {Record<string, number>} */
      const found = after ? { "more than 1,000": 1000 } : {};
      if (!after) for (const run of runs) found[run.status] = (found[run.status] ?? 0) + 1;
      if (this.of === of) this.runs = found;
    } catch (error) {
      this.problem = problemOf(error);
    }
  }

  async #check() {
    this.checking = true;
    try {
      this.report = await this.api.post("/v1/check", { source: this.charter.source });
    } catch (error) {
      const problem = problemOf(error);
      if (problem.body.findings) this.report = { findings: problem.body.findings.diagnostics ?? problem.body.findings };
      else this.problem = problem;
    }
    this.checking = false;
  }

  #all() {
    return html`<h1>Charters</h1>
      ${this.charters?.length === 0 ? html`<p class="faint">There is no charter that you may use.</p>` : nothing}
      <div class="cards">
        ${(this.charters ?? []).map(
          (c) => html`<div class="card"><a href=${`#/charters/${encodeURIComponent(c.id)}`}>
            <strong>${show(c.id)}</strong> <span class="faint small">${show(c.version ?? "")}</span>
            <span class="faint">${c.title ? html`<br />${show(c.title)}` : nothing}</span>
          </a></div>`,
        )}
      </div>`;
  }

  #one() {
    const c = this.charter;
    const events = Object.entries(c.events ?? {});
    const roles = Object.entries(c.roles ?? {});
    const explored = this.report?.explored;
    return html`
      <div class="row">
        <h1>${show(c.id)}</h1>
        <span class="faint">${show(c.title ?? "")} ${show(c.version ?? "")} · <code title=${c.digest}>${short(c.digest)}</code></span>
        <span class="grow"></span>
        <a class="button" href=${`#/runs?charter=${encodeURIComponent(c.id)}`}>Its runs</a>
        <a class="button" href=${`#/try?charter=${encodeURIComponent(c.id)}`}>Try it</a>
      </div>
      ${this.runs ? html`<p class="faint">Runs: ${Object.entries(this.runs).map(([s, n]) => `${n.toLocaleString("en")} ${s}`).join(", ") || "none yet"}.</p>` : nothing}
      ${this.picture ? html`<div class="frame" tabindex="0" role="group" aria-label="Chart">${this.picture}</div>` : html`<p class="faint" aria-busy="true">Drawing…</p>`}
      <section>
        <div class="row">
          <h2>Findings</h2>
          <button ?disabled=${this.checking} @click=${this.#check}>${this.checking ? "Checking…" : "Check"}</button>
          ${explored ? html`<span class="faint small">${count(explored.states ?? 0, "state")} explored${explored.complete ? ", completely" : ", not completely"}</span>` : nothing}
        </div>
        ${this.report ? (this.report.findings.length ? findingsOf(this.report.findings) : html`<p>Nothing wrong was found.</p>`) : nothing}
      </section>
      <section>
        <h2>Events</h2>
        <dl class="facts">
          ${events.map(([name, event]) => html`<dt><code>${show(name)}</code></dt><dd>${show(event.description ?? "")}
            ${event.data?.properties ? html`<span class="faint small">${Object.keys(event.data.properties).join(", ")}</span>` : nothing}</dd>`)}
        </dl>
      </section>
      <section>
        <h2>Roles</h2>
        <dl class="facts">${roles.map(([name, role]) => html`<dt><code>${show(name)}</code></dt><dd>${show(role.description ?? "")}</dd>`)}</dl>
      </section>
      <section>
        <h2>Text</h2>
        <pre class="block source" tabindex="0" role="region" aria-label="Text of the charter">${show(c.source)}</pre>
      </section>
    `;
  }

  render() {
    return html`${this.problem ? html`<p class="note bad" role="alert">${show(this.problem.detail)}</p>` : nothing}
    ${!this.of ? this.#all() : this.charter ? this.#one() : this.problem ? nothing : html`<p class="faint" aria-busy="true">Loading…</p>`}`;
  }
}

customElements.define("view-charters", ViewCharters);
