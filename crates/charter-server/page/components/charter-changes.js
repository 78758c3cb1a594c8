// `<charter-changes>`: the files of a changeset that a run names, before and after.
import { css, html, nothing } from "../lit.js";
import { problemOf } from "../lib/api.js";
import { Component } from "../lib/base.js";
import { contentsOf } from "../lib/contents.js";
import { count } from "../lib/format.js";
import { visible as show } from "../lib/text.js";
import { shared } from "../lib/style.js";

/** Files that are read at once; more of them with a click. */
const PAGE = 50;

export class CharterChanges extends Component {
  static properties = {
    run: { type: String },
    at: { type: Number },
    value: { attribute: false },
    label: { type: String },
    found: { state: true },
    problem: { state: true },
    wanted: { state: true },
  };

  static styles = [shared, css`:host { display: grid; gap: 0.5rem; grid-template-columns: minmax(0, 1fr); } ul { display: grid; gap: 0.2rem; }`];

  constructor() {
    super();
    this.run = "";
    /** The record after which the data of the run have the changeset. */
    this.at = 0;
    /** @type {import("../lib/contents.js").Changeset | null} */
    this.value = null;
    this.label = "Changes";
    /** @type {Awaited<ReturnType<typeof contentsOf>> | null} */
    this.found = null;
    /** @type {import("../lib/api.js").Problem | null} */
    this.problem = null;
    this.wanted = PAGE;
    this.named = "";
    this.shown = "";
  }

  /** @param {Map<string, any>} changed */
  willUpdate(changed) {
    if (!["run", "value", "wanted", "client"].some((name) => changed.has(name)) || !this.value || !this.run) return;
    // The same changeset after a later record has the same contents.
    const named = JSON.stringify([this.run, this.value]);
    if (named !== this.named) [this.named, this.found, this.wanted] = [named, null, PAGE];
    const wanted = `${named} ${this.wanted}`;
    if (wanted !== this.shown) this.#load((this.shown = wanted));
  }

  /** @param {string} wanted */
  async #load(wanted) {
    try {
      const [found] = await Promise.all([
        contentsOf(this.api, this.run, this.at, this.value?.changes.slice(0, this.wanted) ?? []),
        import("./charter-diff.js"),
      ]);
      if (this.shown !== wanted) return;
      this.found = found;
      this.problem = null;
    } catch (error) {
      if (this.shown === wanted) this.problem = problemOf(error);
    }
  }

  render() {
    if (!this.value) return nothing;
    const { found } = this;
    const rest = this.value.changes.length - this.wanted;
    return html`
      ${this.problem ? html`<p class="note bad" role="alert">${show(this.problem.detail)}</p>` : nothing}
      ${found
        ? html`${found.files.length ? html`<charter-diff .files=${found.files} label=${this.label}></charter-diff>` : nothing}
            ${found.notes.length
              ? html`<div class="note warn"><p>Not shown:</p>
                  <ul>${found.notes.map(({ path, why }) => html`<li class="wrap"><code>${show(path)}</code>: ${show(why)}</li>`)}</ul></div>`
              : nothing}`
        : this.problem ? nothing : html`<p class="faint" aria-busy="true">Reading ${count(this.value.changes.length, "file")}…</p>`}
      ${rest > 0 ? html`<div><button @click=${() => (this.wanted += PAGE)}>Show ${count(Math.min(rest, PAGE), "more file", "more files")}</button></div>` : nothing}
    `;
  }
}

customElements.define("charter-changes", CharterChanges);
