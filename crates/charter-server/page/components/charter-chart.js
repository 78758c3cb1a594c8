// `<charter-chart run=...>`: the chart of a run as the server draws it: active states, transitions taken, legal events.
import { css, html, nothing } from "../lit.js";
import { problemOf } from "../lib/api.js";
import { OfRun } from "../lib/of-run.js";
import { markLegal, pictureOf, pictureStyles } from "../lib/picture.js";
import { visible as show } from "../lib/text.js";
import { shared } from "../lib/style.js";

export class CharterChart extends OfRun {
  static properties = {
    at: { type: Number },
    picture: { state: true },
    problem: { state: true },
    large: { state: true },
  };

  static styles = [
    shared,
    pictureStyles,
    css`
      .frame { overflow: auto; border: 1px solid var(--line); border-radius: 8px; max-height: 70vh; background: var(--bg); }
      .legend { display: flex; flex-wrap: wrap; gap: 0 1rem; align-items: center; margin-top: 0.25rem; }
      .good { color: var(--good); }
      .may { color: var(--accent); font-weight: 650; }
    `,
  ];

  constructor() {
    super();
    /** The record after which it is shown; the last one if it is null. @type {number | null} */
    this.at = null;
    /** @type {SVGElement | null} */
    this.picture = null;
    /** @type {import("../lib/api.js").Problem | null} */
    this.problem = null;
    this.large = false;
    this.shown = "";
    /** @type {AbortController | null} */
    this.asking = null;
  }

  /** @param {Map<string, any>} changed */
  willUpdate(changed) {
    super.willUpdate(changed);
    const seq = this.at ?? this.store?.view?.seq;
    const wanted = seq === undefined || !this.store ? "" : `${this.store.id} ${seq}`;
    if (wanted && wanted !== this.shown) this.#draw(wanted, seq);
  }

  /** @param {string} wanted @param {number} seq */
  async #draw(wanted, seq) {
    this.shown = wanted;
    this.asking?.abort();
    const asking = new AbortController();
    this.asking = asking;
    try {
      const text = await this.api.text(`${this.store?.path}/graph.svg?at=${seq}`, asking.signal);
      if (asking.signal.aborted) return;
      this.picture = pictureOf(text);
      this.problem = null;
    } catch (error) {
      if (!asking.signal.aborted) this.problem = problemOf(error);
    }
  }

  /** Marks the labels of events that the caller may send. */
  #mark() {
    const isNow = this.at === null || this.at === this.store?.view?.seq;
    const legal = new Set((isNow && this.store?.legal?.events ? this.store.legal.events : []).map((/** @type {any} */ e) => e.type));
    markLegal(this.picture, legal);
    return legal.size;
  }

  render() {
    const may = this.#mark();
    return html`
      ${this.problem ? html`<p class="note bad">${show(this.problem.detail)}</p>` : nothing}
      ${this.picture
        ? html`<div class="frame ${this.large ? "large" : ""}" tabindex="0" role="group" aria-label="Chart">${this.picture}</div>
            <p class="legend small faint">
              <span><span class="good">green</span>: active, taken</span>
              ${may ? html`<span><span class="may">blue</span>: you may send it</span>` : nothing}
              <button class="plain small" @click=${() => (this.large = !this.large)}>${this.large ? "Fit" : "Actual size"}</button>
            </p>`
        : html`<p class="faint" aria-busy="true">Drawing…</p>`}
    `;
  }
}

customElements.define("charter-chart", CharterChart);
