// `<charter-diff>`: what changed, of two texts, a unified diff, the files of a changeset, or two JSON values.
import { LitElement, css, html, nothing } from "../lit.js";
import { words } from "../lib/diff.js";
import { fileRows, jsonRows, patchRows, shownRows, textRows } from "../lib/diff-rows.js";
import { shared } from "../lib/style.js";
import { MAX_LINE, line, markStyles, marked, visible } from "../lib/text.js";

/** @typedef {import("../lib/diff-rows.js").Row} Row */
/** @typedef {import("../lib/diff-rows.js").FileRows} FileRows */
/** @typedef {import("../lib/diff-rows.js").ChangedFile} ChangedFile */

/** Height of a row in pixels, as the styles have it, and rows drawn beyond what is seen. */
const ROW = 20;
const MARGIN = 15;
/** Differences of words that are kept. */
const MAX_KEPT = 2_000;

/** @type {Record<Row["kind"], string>} */
const SIGNS = { same: "", added: "+", removed: "−", note: "", file: "", path: "", gap: "" };

/**
 * Properties: `before` and `after` (texts, or values with `mode="json"`), or `patch`, or `files`; `choose` (a checkbox for
 * each file) and `chosen` (paths); `context` (lines around a change). Event: `choice` (`detail`: the chosen paths).
 */
export class CharterDiff extends LitElement {
  static properties = {
    before: { attribute: false },
    after: { attribute: false },
    patch: { attribute: false },
    files: { attribute: false },
    mode: { type: String },
    choose: { type: Boolean },
    chosen: { attribute: false },
    context: { type: Number },
    label: { type: String },
    first: { state: true },
    last: { state: true },
    opened: { state: true },
    whole: { state: true },
  };

  static styles = [
    shared,
    markStyles,
    css`
      .frame { border: 1px solid var(--line); border-radius: 6px; overflow: hidden; }
      .head { display: flex; flex-wrap: wrap; align-items: center; gap: 0.25rem 0.9rem; padding: 0.4rem 0.7rem; background: var(--surface); border-bottom: 1px solid var(--line); }
      .head:last-child { border-bottom: 0; }
      .plus { color: var(--good); } .minus { color: var(--bad); }
      .files { max-height: 14rem; overflow: auto; border-bottom: 1px solid var(--line); }
      .files li { display: flex; align-items: center; gap: 0.5rem; padding: 0.05rem 0.7rem; min-height: 1.9rem; }
      .files input { width: 1.05rem; height: 1.05rem; min-height: 0; margin: 0; accent-color: var(--accent); flex: none; }
      .files label { flex: 1 1 auto; min-width: 0; overflow-wrap: anywhere; font-family: var(--mono); font-size: 0.86rem; }
      .files .counts { white-space: nowrap; font-size: 0.82rem; }
      .left-out label { text-decoration: line-through; color: var(--faint); }
      .scroll { overflow: auto; max-height: var(--charter-diff-height, 70vh); font: 13px/20px var(--mono); tab-size: 4; contain: content; }
      .scroll:focus-visible { outline-offset: -2px; }
      .space { min-width: max-content; }
      .line { display: grid; grid-template-columns: 3.2rem 3.2rem 1.2rem auto; height: 20px; white-space: nowrap; }
      .line > * { height: 20px; overflow: hidden; }
      .json .line { grid-template-columns: 0 0 1.8rem auto; }
      .n { color: var(--faint); text-align: right; padding-right: 0.6rem; user-select: none; }
      .sign { user-select: none; text-align: center; }
      .code { padding-right: 1rem; unicode-bidi: isolate; white-space: pre; }
      .note > span, .path > span { white-space: pre; }
      .added { background: var(--good-bg); } .removed { background: var(--bad-bg); }
      .added .sign { color: var(--good); } .removed .sign { color: var(--bad); }
      .added .word { background: light-dark(#a9e2b6, #1f5a30); } .removed .word { background: light-dark(#f7c1bc, #6b2722); }
      .word { border-radius: 2px; }
      .note, .path, .file, .gap { display: block; padding: 0 0.7rem; border: 0; border-radius: 0; background: var(--surface); color: var(--faint); }
      .file, .path { color: var(--text); font-weight: 600; }
      .gap { background: none; }
      .line button { font: 12px/18px var(--mono); min-height: 18px; height: 18px; padding: 0 0.4rem; border: 0; background: none; color: var(--accent); }
      .mark { line-height: 16px; height: 16px; vertical-align: 1px; }
      .whole { border-top: 1px solid var(--line); padding: 0.5rem 0.7rem; max-height: 20rem; overflow: auto; }
      .whole .text { font: 13px/1.5 var(--mono); }
      @container (max-width: 480px) { .line { grid-template-columns: 0 2.6rem 1rem auto; } }
      :host { container-type: inline-size; }
      @media print { .scroll { max-height: none; } }
    `,
  ];

  constructor() {
    super();
    // Elements have methods of these names, which nobody needs here.
    Object.assign(this, { before: undefined, after: undefined });
    /** @type {string | null} */
    this.patch = null;
    /** @type {ChangedFile[] | null} */
    this.files = null;
    /** @type {"text" | "json"} */
    this.mode = "text";
    this.choose = false;
    /** The paths of the chosen files; all, if it is not set. @type {string[] | null} */
    this.chosen = null;
    this.context = 3;
    this.label = "Changes";
    /** The rows that are drawn. */
    this.first = 0;
    this.last = 60;
    /** Ranges without a change that are shown. @type {Set<string>} */
    this.opened = new Set();
    /** A long line that is shown in full. @type {string | null} */
    this.whole = null;
    /** @type {FileRows[]} */
    this.compared = [];
    /** @type {Row[]} */
    this.rows = [];
    /** @type {Map<Row, ReturnType<typeof words>>} */
    this.kept = new Map();
    /** @type {ResizeObserver | null} */
    this.observer = null;
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this.observer?.disconnect();
    this.observer = null;
  }

  /** @param {Map<string, unknown>} changed */
  willUpdate(changed) {
    if (["before", "after", "patch", "files", "mode"].some((name) => changed.has(name))) {
      this.compared = this.#compare();
      this.kept.clear();
      this.opened = new Set();
      this.whole = null;
      if (changed.get("files") || changed.get("patch")) this.chosen = changed.has("chosen") ? this.chosen : null;
    }
    if (["before", "after", "patch", "files", "mode", "context", "opened"].some((name) => changed.has(name))) {
      this.rows = shownRows(this.compared, Math.max(0, this.context || 0), this.opened);
      // A difference that shows no more than before is drawn from its first row.
      if (this.first > this.rows.length) [this.first, this.last] = [0, 60];
    }
  }

  /** @returns {FileRows[]} */
  #compare() {
    if (this.files) return this.files.map(fileRows);
    if (typeof this.patch === "string") return patchRows(this.patch);
    const { before, after } = /** @type {{before: any, after: any}} */ (/** @type {unknown} */ (this));
    if (this.mode === "json") return [jsonRows(before, after)];
    const rows = textRows(String(before ?? ""), String(after ?? ""));
    const count = (/** @type {string} */ kind) => rows.filter((row) => row.kind === kind).length;
    return [{ path: "", operation: "modify", added: count("added"), removed: count("removed"), rows }];
  }

  updated() {
    const space = /** @type {HTMLElement | null} */ (this.renderRoot.querySelector(".space"));
    const scroll = /** @type {HTMLElement | null} */ (this.renderRoot.querySelector(".scroll"));
    if (!space || !scroll) return;
    // Not as attributes: a strict policy allows no styles there.
    space.style.height = `${this.rows.length * ROW}px`;
    space.style.paddingTop = `${Math.min(this.first, this.rows.length) * ROW}px`;
    if (!this.observer) {
      this.observer = new ResizeObserver(() => this.#scrolled());
      this.observer.observe(scroll);
    }
  }

  #scrolled() {
    const scroll = this.renderRoot.querySelector(".scroll");
    if (!scroll) return;
    const top = Math.floor(scroll.scrollTop / ROW);
    this.first = Math.max(0, top - MARGIN);
    this.last = top + Math.ceil(scroll.clientHeight / ROW) + MARGIN;
  }

  /** The paths that are chosen. @returns {string[]} */
  get choice() {
    return this.compared.map((file) => file.path).filter((path) => !this.chosen || this.chosen.includes(path));
  }

  /** @param {string[]} paths */
  #chose(paths) {
    this.chosen = paths;
    this.dispatchEvent(new CustomEvent("choice", { detail: this.choice, bubbles: true, composed: true }));
  }

  /** @param {number} index */
  #jump(index) {
    const row = this.rows.findIndex((one) => one.kind === "file" && one.file === index);
    const scroll = this.renderRoot.querySelector(".scroll");
    if (scroll && row >= 0) scroll.scrollTop = row * ROW;
  }

  /** @param {FileRows} file */
  #counts(file) {
    return html`<span class="counts"><span class="plus">+${file.added}</span> <span class="minus">−${file.removed}</span></span>`;
  }

  #list() {
    const choice = new Set(this.choice);
    const all = choice.size === this.compared.length;
    return html`
      ${this.choose
        ? html`<div class="head">
            <span class="grow" role="status">${choice.size} of ${this.compared.length} files chosen</span>
            <button type="button" class="plain" @click=${() => this.#chose(all ? [] : this.compared.map((file) => file.path))}>${all ? "Choose none" : "Choose all"}</button>
          </div>`
        : nothing}
      <ul class="files" aria-label="Files">
        ${this.compared.map((file, index) => {
          const toggle = () => this.#chose(this.compared.map((one) => one.path).filter((path) => (path === file.path ? !choice.has(path) : choice.has(path))));
          const name = html`${visible(file.path)} <span class="faint">${visible(file.operation)}</span>`;
          return html`<li class=${choice.has(file.path) ? "" : "left-out"}>
            ${this.choose
              ? html`<input type="checkbox" id="f${index}" .checked=${choice.has(file.path)} @change=${toggle}><label for="f${index}">${name}</label>`
              : html`<label>${name}</label>`}
            ${this.#counts(file)}
            <button type="button" class="plain" aria-label="Show ${marked(file.path)}" @click=${() => this.#jump(index)}>Show</button>
          </li>`;
        })}
      </ul>
    `;
  }

  /** The text of a line, with the words that changed. @param {Row} row */
  #code(row) {
    let parts = null;
    if (row.pair !== undefined) {
      if (!this.kept.has(row)) {
        if (this.kept.size > MAX_KEPT) this.kept.clear();
        this.kept.set(row, row.kind === "removed" ? words(row.text, row.pair) : words(row.pair, row.text));
      }
      parts = this.kept.get(row)?.[row.kind === "removed" ? 0 : 1];
    }
    if (parts) return parts.map((part) => (part.changed ? html`<span class="word">${line(part.text)}</span>` : line(part.text)));
    if (row.text.length <= MAX_LINE) return line(row.text);
    const more = row.text.length - MAX_LINE;
    return html`${line(row.text.slice(0, MAX_LINE))}<button type="button" @click=${() => (this.whole = row.text)}>… ${more.toLocaleString("en")} more characters</button>`;
  }

  /** @param {Row} row @param {number} index */
  #row(row, index) {
    if (row.kind === "gap") {
      const [from, to] = row.hidden ?? [0, 0];
      const open = () => (this.opened = new Set([...this.opened, row.text]));
      return html`<div class="line gap" role="row" aria-rowindex=${index + 1}>
        <span role="cell"><button type="button" @click=${open}>⋯ ${to - from} unchanged lines</button></span>
      </div>`;
    }
    if (row.kind === "file") {
      const file = this.compared[row.file ?? 0];
      return html`<div class="line file" role="row" aria-rowindex=${index + 1}>
        <span role="cell">${line(row.text)} <span class="faint">${line(file.operation)}</span> ${this.#counts(file)}</span>
      </div>`;
    }
    if (row.kind === "note" || row.kind === "path") {
      return html`<div class="line ${row.kind}" role="row" aria-rowindex=${index + 1}><span role="cell">${line(row.text.slice(0, MAX_LINE))}</span></div>`;
    }
    return html`<div class="line ${row.kind}" role="row" aria-rowindex=${index + 1}>
      <span class="n" role="cell">${row.old ?? ""}</span><span class="n" role="cell">${row.new ?? ""}</span
      ><span class="sign" role="cell">${SIGNS[row.kind]}</span><span class="code" role="cell">${this.#code(row)}</span>
    </div>`;
  }

  render() {
    const isMany = this.compared.length > 1 || this.choose;
    const [added, removed] = this.compared.reduce(([a, r], file) => [a + file.added, r + file.removed], [0, 0]);
    const parts = this.rows.filter((row) => row.kind === "path").length;
    const isEmpty = !this.compared.some((file) => file.rows.some((row) => row.kind !== "same"));
    return html`<div class="frame">
      <div class="head" part="summary">
        <strong>${visible(this.label)}</strong>
        ${isEmpty && !isMany
          ? html`<span class="faint">Nothing changed.</span>`
          : this.mode === "json" && !this.files && this.patch === null
            ? html`<span>${parts} ${parts === 1 ? "part differs" : "parts differ"}</span>`
            : html`<span><span class="plus">${added} ${added === 1 ? "line" : "lines"} added</span>, <span class="minus">${removed} removed</span></span>`}
      </div>
      ${isMany ? this.#list() : nothing}
      ${this.rows.length === 0
        ? nothing
        : html`<div class="scroll" part="lines" role="table" tabindex="0" aria-label=${marked(this.label)} aria-rowcount=${this.rows.length} @scroll=${this.#scrolled}>
            <div class="space ${this.mode}" role="rowgroup">${this.rows.slice(this.first, this.last).map((row, index) => this.#row(row, this.first + index))}</div>
          </div>`}
      ${this.whole === null
        ? nothing
        : html`<div class="whole" role="region" aria-label="One line in full" tabindex="0">
            <div class="row"><strong class="grow">One line in full</strong><button type="button" @click=${() => (this.whole = null)}>Close</button></div>
            <div class="text">${visible(this.whole)}</div>
          </div>`}
    </div>`;
  }
}

if (!customElements.get("charter-diff")) customElements.define("charter-diff", CharterDiff);
