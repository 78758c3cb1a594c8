// `<charter-event>`: one event that can be sent, as a button, and a form if its data says more than what is known.
import { css, html, nothing } from "../lit.js";
import { newKey, problemOf } from "../lib/api.js";
import { Component } from "../lib/base.js";
import { takesPart } from "../lib/contents.js";
import { words } from "../lib/format.js";
import { below, errorsOf } from "../lib/pointer.js";
import { visible as show } from "../lib/text.js";
import { shared } from "../lib/style.js";

/** Follows `$ref` within a schema. @param {any} schema @param {any} root @returns {any} */
function resolved(schema, root) {
  for (let depth = 0; depth < 20 && typeof schema?.$ref === "string" && schema.$ref.startsWith("#/"); depth++) {
    const keys = schema.$ref.slice(2).split("/").map((/** @type {string} */ key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
    schema = keys.reduce((/** @type {any} */ at, /** @type {string} */ key) => at?.[key], root);
  }
  return schema;
}

/**
 * The schema of what a person still has to say; `null` if that is nothing.
 * @param {any} schema @param {any} preset @param {string[]} hidden Fields that are not asked for. @returns {any}
 */
export function open(schema, preset, hidden = []) {
  const root = resolved(schema, schema);
  if (!root || root === true || typeof root !== "object") return null;
  if (root.type !== "object" && !root.properties) return root;
  const properties = Object.entries(root.properties ?? {}).filter(([name]) => !(name in preset) && !hidden.includes(name));
  if (!properties.length) return null;
  const required = (root.required ?? []).filter((/** @type {string} */ name) => !(name in preset));
  return { ...root, $defs: schema.$defs, properties: Object.fromEntries(properties), required };
}

/** The name of the only field, if it is text: a reason, for example. @param {any} schema @returns {string | null} */
function onlyText(schema) {
  const names = Object.keys(schema?.properties ?? {});
  const [name] = names;
  if (names.length !== 1 || name === undefined) return null;
  const field = resolved(schema.properties[name], schema);
  return field?.type === "string" && !field.enum && !field.format ? name : null;
}

/** Why others may decide, and the caller may not. @param {string} why @param {any} demands @returns {string} */
export function whyNot(why, demands) {
  if (why === "not-by") return `Four eyes: this came from ${demands?.not_by?.join(", ") || "you"}, so somebody else has to decide.`;
  if (why === "voted") return "You have voted; others have to agree.";
  if (why === "persons-only") return "Only people may decide this; your key belongs to a program.";
  if (why === "authenticated-only") return "Your name is not authenticated: sign in with a key.";
  return why;
}

export class CharterEvent extends Component {
  static properties = {
    run: { type: String },
    to: { type: String },
    event: { attribute: false },
    caption: { type: String },
    main: { type: Boolean },
    accepting: { attribute: false },
    idle: { type: Boolean },
    opened: { state: true },
    busy: { state: true },
    problem: { state: true },
  };

  static styles = [
    shared,
    css`
      form, .form { display: grid; justify-items: start; gap: 0.6rem; margin-top: 0.4rem; padding: 0.75rem; border: 1px solid var(--line); border-radius: 8px; }
      form > label { justify-self: stretch; }
      charter-form { justify-self: stretch; }
      textarea.text { font: inherit; min-height: 4.5rem; }
      .note { margin-top: 0.5rem; }
      .error { color: var(--bad); font-size: 0.9rem; overflow-wrap: anywhere; justify-self: stretch; }
      [aria-invalid="true"] { border-color: var(--bad); outline-color: var(--bad); }
    `,
  ];

  constructor() {
    super();
    this.run = "";
    this.to = "root";
    /** The event as in the inbox or in the legal events. @type {any} */
    this.event = {};
    /** What the button says instead of the name of the event. */
    this.caption = "";
    this.main = false;
    /** The part of a changeset that is approved; `null`: all of it. @type {{digest: string, accepted: string[]} | null} */
    this.accepting = null;
    /** Whether it cannot be sent now, for a reason that is shown elsewhere. */
    this.idle = false;
    this.opened = false;
    this.busy = false;
    /** @type {import("../lib/api.js").Problem | null} */
    this.problem = null;
    /** Ids of events by their content, so that a repeated click is the same event. @type {Map<string, string>} */
    this.keys = new Map();
    /** The form of data that are more than one text. @type {import("./charter-form.js").CharterForm | null} */
    this.form = null;
  }

  /** @param {Map<string, any>} changed */
  willUpdate(changed) {
    const before = changed.get("event");
    const other = before && (before.type !== this.event.type || (changed.has("run") && changed.get("run") !== this.run));
    if (other) [this.opened, this.form, this.problem] = [false, null, null];
    // The charter may ask for other data, or for none, in the state that has come.
    else if (before && this.opened && !this.open) this.opened = false;
  }

  /** What the data has that is not for the person to choose. */
  get preset() {
    if (this.accepting) return { ...this.accepting };
    const digest = this.event.demands?.approves?.digest;
    return digest ? { digest } : {};
  }

  /** The schema of what is still to be said. Which files are accepted is chosen where they are shown. */
  get open() {
    return open(this.event.data, this.preset, takesPart(this.event) ? ["accepted"] : []);
  }

  get label() {
    return this.caption || words(this.event.type);
  }

  #press() {
    const schema = this.open;
    if (schema) this.#show(schema);
    else this.#send(this.preset);
  }

  /** @param {any} schema */
  async #show(schema) {
    this.opened = true;
    this.problem = null;
    this.form = null;
    if (!onlyText(schema)) {
      // Most events need none: it is loaded when it is.
      const { formFor } = await import("../lib/form.js");
      this.form = formFor(schema, { label: this.#action });
      this.requestUpdate();
    }
    /** @type {any} */ (this.form)?.addEventListener("submit", (/** @type {CustomEvent} */ event) => {
      event.stopPropagation();
      const value = event.detail;
      const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
      this.#send(isObject ? { ...this.preset, ...value } : value);
    });
    this.updateComplete.then(() => /** @type {HTMLElement | null} */ (this.form ?? this.renderRoot.querySelector("textarea"))?.focus());
  }

  get #action() {
    return `Send: ${this.label}`;
  }

  /** @param {SubmitEvent} event */
  #submit(event) {
    event.preventDefault();
    const text = String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("value") ?? "");
    const name = /** @type {string} */ (onlyText(this.open));
    this.#send({ ...this.preset, [name]: text });
  }

  /** @param {any} data */
  async #send(data) {
    if (this.busy) return;
    this.busy = true;
    if (this.form) this.form.busy = true;
    this.problem = null;
    const content = JSON.stringify([this.run, this.to, this.event.type, data]);
    const key = this.keys.get(content) ?? newKey();
    this.keys.set(content, key);
    const event = { type: this.event.type, to: this.to, data };
    try {
      const record = await this.api.send(this.run, event, { key });
      this.keys.clear();
      this.opened = false;
      this.dispatchEvent(new CustomEvent("sent", { detail: { record, data }, bubbles: true, composed: true }));
    } catch (error) {
      this.problem = problemOf(error);
      // A refused event is recorded; another attempt is another event.
      if (this.problem.status > 0 && this.problem.status < 500) this.keys.delete(content);
      this.form?.showErrors(errorsOf(this.problem.body));
      if (this.#atReason().length) this.updateComplete.then(() => /** @type {HTMLElement | null} */ (this.renderRoot.querySelector("textarea"))?.focus());
      this.dispatchEvent(new CustomEvent("refused", { detail: this.problem, bubbles: true, composed: true }));
    }
    this.busy = false;
    if (this.form) this.form.busy = false;
  }

  #close() {
    this.opened = false;
    this.problem = null;
    this.updateComplete.then(() => /** @type {HTMLElement | null} */ (this.renderRoot.querySelector("button"))?.focus());
  }

  /** What the server says about the only field. */
  #atReason() {
    const name = onlyText(this.open);
    if (!this.opened || this.form || !this.problem || name === null) return [];
    return errorsOf(this.problem.body).filter(({ pointer }) => pointer === below("", name));
  }

  #reason() {
    const schema = this.open;
    const name = /** @type {string} */ (onlyText(schema));
    const field = resolved(schema.properties[name], schema);
    const required = schema.required.includes(name);
    const wrong = this.#atReason();
    return html`<form @submit=${this.#submit}>
      <strong>${show(this.label)}</strong>
      <label>
        ${words(name)}${required ? nothing : " (optional)"}
        ${field?.description ? html`<span class="small faint"> ${show(field.description)}</span>` : nothing}
        <textarea class="text" name="value" ?required=${required} maxlength=${field?.maxLength ?? nothing}
          aria-invalid=${wrong.length > 0} aria-describedby=${wrong.length ? "wrong" : nothing}></textarea>
      </label>
      ${wrong.length ? html`<div id="wrong" class="error" role="alert">${wrong.map(({ message }) => html`<p>${show(message)}</p>`)}</div>` : nothing}
      <div class="row">
        <button class=${this.main ? "main" : ""} ?disabled=${this.busy}>${this.busy ? "Sending…" : this.#action}</button>
        <button type="button" class="plain" @click=${this.#close}>Cancel</button>
      </div>
    </form>`;
  }

  #form() {
    return html`<div class="form">
      <strong>${show(this.label)}</strong>
      ${this.form}
      <button type="button" class="plain" @click=${this.#close}>Cancel</button>
    </div>`;
  }

  render() {
    const withheld = this.event.withheld;
    // What is said at the field is not said twice.
    const said = this.problem ? errorsOf(this.problem.body).length : 0;
    const refusal = said > 0 && said === this.#atReason().length ? null : this.problem;
    return html`
      ${this.opened
        ? html`<div @keydown=${(/** @type {KeyboardEvent} */ e) => e.key === "Escape" && (e.stopPropagation(), this.#close())}>
            ${this.form ? this.#form() : onlyText(this.open) ? this.#reason() : html`<p class="faint">Loading…</p>`}
          </div>`
        : html`<button
            class=${this.main ? "main" : ""}
            ?disabled=${Boolean(withheld) || this.busy || this.idle}
            aria-describedby=${withheld ? "why" : nothing}
            title=${this.event.description ?? nothing}
            @click=${this.#press}
          >
            ${this.busy ? "Sending…" : show(this.label)}
          </button>`}
      ${withheld ? html`<p id="why" class="small faint">${show(whyNot(withheld, this.event.demands))}</p>` : nothing}
      <div role="alert">
        ${refusal
          ? html`<p class="note bad wrap">
              ${show(refusal.detail)}
              ${String(refusal.body.type ?? "").startsWith("/codes/")
                ? html` <a href=${this.api.base + refusal.body.type} target="_blank" rel="noreferrer">${refusal.code}</a>`
                : nothing}
            </p>`
          : nothing}
      </div>
    `;
  }
}

customElements.define("charter-event", CharterEvent);
