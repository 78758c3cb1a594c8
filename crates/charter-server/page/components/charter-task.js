// `<charter-task>`: a task of a person: its input, and an answer, or why not.
import { css, html, nothing } from "../lit.js";
import { problemOf } from "../lib/api.js";
import { Component } from "../lib/base.js";
import { changesetsOf } from "../lib/contents.js";
import { errorsOf } from "../lib/pointer.js";
import { visible as show } from "../lib/text.js";
import { shared } from "../lib/style.js";
import "./charter-changes.js";
import "./charter-value.js";

export class CharterTask extends Component {
  static properties = {
    task: { attribute: false },
    at: { type: Number },
    declining: { state: true },
    busy: { state: true },
    problem: { state: true },
  };

  static styles = [shared, css`form, section { display: grid; gap: 0.6rem; margin-top: 0.6rem; } textarea.text { font: inherit; }`];

  constructor() {
    super();
    /** @type {any} */
    this.task = null;
    /** The last record of its run. */
    this.at = 0;
    this.declining = false;
    this.busy = false;
    /** @type {import("./charter-form.js").CharterForm | null} */
    this.form = null;
    /** @type {import("../lib/api.js").Problem | null} */
    this.problem = null;
  }

  /** @param {Record<string, any>} answer */
  async #send(answer) {
    if (this.busy) return;
    this.busy = true;
    this.problem = null;
    try {
      // The task is the id: it is answered once.
      const record = await this.api.post(`/v1/runs/${encodeURIComponent(this.task.run)}/answers`, { task: this.task.effect, ...answer });
      this.dispatchEvent(new CustomEvent("sent", { detail: { record }, bubbles: true, composed: true }));
    } catch (error) {
      this.problem = problemOf(error);
      this.form?.showErrors(errorsOf(this.problem.body));
      this.dispatchEvent(new CustomEvent("refused", { detail: this.problem, bubbles: true, composed: true }));
    }
    this.busy = false;
  }

  /** @param {Map<string, any>} changed */
  willUpdate(changed) {
    if (!changed.has("task") || !this.task || changed.get("task")?.effect === this.task.effect) return;
    this.declining = false;
    this.form = null;
    this.#load(this.task);
  }

  /** The form of the answer, which most views do not need. @param {any} task */
  async #load(task) {
    const { formFor } = await import("../lib/form.js");
    if (this.task !== task) return;
    this.form = formFor(task.output ?? true, { label: "Answer" });
    this.form.addEventListener("submit", (event) => {
      event.stopPropagation();
      this.#send({ output: /** @type {any} */ (event).detail });
    });
    this.requestUpdate();
  }

  /** @param {SubmitEvent} event */
  #decline(event) {
    event.preventDefault();
    this.#send({ declined: String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("why") ?? "") });
  }

  render() {
    if (!this.task) return nothing;
    return html`
      <section>
        <charter-value .value=${this.task.input}></charter-value>
        ${changesetsOf(this.task.input).map(({ value }) => html`<charter-changes .client=${this.api} .run=${this.task.run} .at=${this.at} .value=${value}></charter-changes>`)}
      </section>
      ${this.declining
        ? html`<form @submit=${this.#decline}>
            <label>Why not <textarea name="why" class="text" required></textarea></label>
            <div class="row">
              <button class="main" ?disabled=${this.busy}>${this.busy ? "Sending…" : "Decline"}</button>
              <button type="button" class="plain" @click=${() => (this.declining = false)}>Answer instead</button>
            </div>
          </form>`
        : html`<section>${this.form} <div><button class="plain" @click=${() => (this.declining = true)}>Decline</button></div></section>`}
      <div role="alert">${this.problem ? html`<p class="note bad wrap">${show(this.problem.detail)}</p>` : nothing}</div>
    `;
  }
}

customElements.define("charter-task", CharterTask);
