// `<charter-value>`: a JSON value for people. Text is wrapped, shares are bars, everything else is a tree.
import { css, html, LitElement, nothing } from "../lit.js";
import { count } from "../lib/format.js";
import { visible as show } from "../lib/text.js";
import { shared } from "../lib/style.js";

const MAX_ENTRIES = 200;
/** Levels that are open at first. */
const OPEN = 3;

/** @param {any} value */
const isNested = (value) => typeof value === "object" && value !== null && Object.keys(value).length > 0;

/** Whether a map has shares: numbers from 0 to 1, and not only these two. @param {any} value */
function isShares(value) {
  const all = isNested(value) && !Array.isArray(value) ? Object.values(value) : [];
  return all.every((v) => typeof v === "number" && v >= 0 && v <= 1) && all.some((v) => v > 0 && v < 1);
}

export class CharterValue extends LitElement {
  static properties = {
    value: { attribute: false },
    marks: { attribute: false },
    more: { state: true },
  };

  static styles = [
    shared,
    css`
      :host { overflow-wrap: anywhere; }
      .text { white-space: pre-wrap; }
      .scalar { font-family: var(--mono); font-size: 0.9em; }
      dl { display: grid; gap: 0.1rem; }
      dl dl, details > dl { margin-left: 0.35rem; padding-left: 0.75rem; border-left: 1px solid var(--line); }
      .leaf { display: flex; flex-wrap: wrap; gap: 0 0.6rem; }
      dt, summary { color: var(--faint); font-size: 0.92em; }
      .leaf dd { min-width: 0; }
      summary { cursor: pointer; }
      meter { width: 7rem; height: 0.7rem; vertical-align: middle; }
      .changed > dt, .changed > dd > details > summary, .changed > dd { background: var(--good-bg); border-radius: 4px; }
    `,
  ];

  constructor() {
    super();
    /** @type {any} */
    this.value = null;
    /** Paths (JSON pointers) that have changed. @type {Set<string> | null} */
    this.marks = null;
    /** Paths of which everything is shown. @type {Set<string>} */
    this.more = new Set();
  }

  /** @param {any} value */
  #scalar(value) {
    if (typeof value === "string") return html`<span class="text">${show(value)}</span>`;
    return html`<span class="scalar">${JSON.stringify(value)}</span>`;
  }

  /** @param {any} value @param {string} path @param {number} depth @returns {any} */
  #nested(value, path, depth) {
    const all = Object.entries(value);
    const entries = this.more.has(path) ? all : all.slice(0, MAX_ENTRIES);
    const shares = isShares(value);
    return html`<dl>
        ${entries.map(([key, inner]) => {
          const at = `${path}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
          const changed = this.marks?.has(at) ? "changed" : "";
          if (!isNested(inner)) {
            return html`<div class="leaf ${changed}">
              <dt>${show(key)}</dt>
              <dd>${shares ? html`<meter min="0" max="1" .value=${inner} aria-hidden="true"></meter> ` : nothing}${this.#scalar(inner)}</dd>
            </div>`;
          }
          const size = Array.isArray(inner) ? count(inner.length, "entry", "entries") : count(Object.keys(inner).length, "field");
          const label = html`${show(key)} <span class="small">${size}</span>`;
          return html`<div class=${changed}>
            <dt class="sr">${show(key)}</dt>
            <dd>
              <details ?open=${depth < OPEN} @toggle=${() => this.requestUpdate()}>
                <summary>${label}</summary>
                ${this.#nested(inner, at, depth + 1)}
              </details>
            </dd>
          </div>`;
        })}
      </dl>
      ${entries.length < all.length
        ? html`<button class="plain" @click=${() => (this.more = new Set([...this.more, path]))}>Show all ${all.length}</button>`
        : nothing}`;
  }

  render() {
    return isNested(this.value) ? this.#nested(this.value, "", 0) : this.#scalar(this.value);
  }
}

customElements.define("charter-value", CharterValue);
