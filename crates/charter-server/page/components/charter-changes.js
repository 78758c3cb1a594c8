// `<charter-changes>`: the files of a changeset that a run names, before and after. With `choose`, a person leaves some of
// them out: event `choice` (detail: the paths that are left out).
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
    choose: { type: Boolean },
    without: { attribute: false },
    found: { state: true },
    problem: { state: true },
    wanted: { state: true },
  };

  static styles = [shared, css`:host { display: grid; gap: 0.5rem; grid-template-columns: minmax(0, 1fr); } ul { display: grid; gap: 0.2rem; } li label { overflow-wrap: anywhere; }`];

  constructor() {
    super();
    this.run = "";
    /** The record after which the data of the run have the changeset. */
    this.at = 0;
    /** @type {import("../lib/contents.js").Changeset | null} */
    this.value = null;
    this.label = "Changes";
    /** Whether files can be left out. */
    this.choose = false;
    /** The paths that are left out. @type {Set<string>} */
    this.without = new Set();
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

  /** @param {string[]} paths Those that the choice is about. @param {string[]} chosen Those of them that are chosen. */
  #chose(paths, chosen) {
    const without = new Set(this.without);
    for (const path of paths) {
      if (chosen.includes(path)) without.delete(path);
      else without.add(path);
    }
    this.without = without;
    this.dispatchEvent(new CustomEvent("choice", { detail: without, bubbles: true, composed: true }));
  }

  /** A file that cannot be shown can be left out, too. @param {{path: string, why: string}} note */
  #note({ path, why }) {
    const said = html`<code>${show(path)}</code>: ${show(why)}`;
    if (!this.choose) return html`<li class="wrap">${said}</li>`;
    const change = (/** @type {any} */ event) => this.#chose([path], event.target.checked ? [path] : []);
    return html`<li><label><input type="checkbox" .checked=${!this.without.has(path)} @change=${change} /> ${said}</label></li>`;
  }

  /** @param {import("../lib/contents.js").ChangedFile[]} files */
  #files(files) {
    const paths = files.map(({ path }) => path);
    return html`<charter-diff
      .files=${files}
      label=${this.label}
      ?choose=${this.choose && this.value !== null && this.value.changes.length > 1}
      .chosen=${this.choose ? paths.filter((path) => !this.without.has(path)) : null}
      @choice=${(/** @type {CustomEvent} */ event) => {
        event.stopPropagation();
        this.#chose(paths, event.detail);
      }}
    ></charter-diff>`;
  }

  render() {
    if (!this.value) return nothing;
    const { found } = this;
    const rest = this.value.changes.length - this.wanted;
    return html`
      ${this.problem ? html`<p class="note bad" role="alert">${show(this.problem.detail)}</p>` : nothing}
      ${found
        ? html`${found.files.length ? this.#files(found.files) : nothing}
            ${found.notes.length
              ? html`<div class="note warn"><p>Not shown:</p>
                  <ul>${found.notes.map((note) => this.#note(note))}</ul></div>`
              : nothing}`
        : this.problem ? nothing : html`<p class="faint" aria-busy="true">Reading ${count(this.value.changes.length, "file")}…</p>`}
      ${rest > 0 ? html`<div><button @click=${() => (this.wanted += PAGE)}>Show ${count(Math.min(rest, PAGE), "more file", "more files")}</button></div>` : nothing}
    `;
  }
}

customElements.define("charter-changes", CharterChanges);
