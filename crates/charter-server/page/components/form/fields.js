// Fields of a form that hold one value: text, numbers, yes or no, one of several, JSON.
import { html, live, nothing } from "../../lit.js";
import { inLabel } from "../../lib/schema.js";
import { isPlain, marked, visible } from "../../lib/text.js";
import { description, need } from "./parts.js";

/** @typedef {import("../../lib/draft.js").Part} Part */
/** @typedef {import("../charter-form.js").CharterForm} Form */
/** @typedef {import("./parts.js").Said} Said */

/** A text may have more lines if it may have more characters than this. */
const MAX_SHORT = 120;
/** Fewer values than this are seen at once. */
const MAX_RADIOS = 5;

/** @param {Part} part @param {Said} said */
function head(part, said) {
  return html`<label for="p${part.id}" class=${said.hidden ? "sr" : ""}><span class="label">${visible(said.label)}</span>${need(said)}</label>`;
}

/** Examples and bounds. @param {Part} part @returns {string[]} */
function hints(part) {
  const { schema } = part.shape;
  const out = [];
  const low = schema.minimum ?? schema.exclusiveMinimum;
  const high = schema.maximum ?? schema.exclusiveMaximum;
  if (part.kind === "integer") out.push("A whole number");
  if (low !== undefined && high !== undefined) out.push(`${low} to ${high}`);
  else if (low !== undefined) out.push(schema.minimum === undefined ? `More than ${low}` : `${low} or more`);
  else if (high !== undefined) out.push(schema.maximum === undefined ? `Less than ${high}` : `${high} or less`);
  if (schema.multipleOf !== undefined) out.push(`A multiple of ${schema.multipleOf}`);
  const told = ["date", "date-time", "email", "uri"];
  if (part.kind === "string" && typeof schema.format === "string" && !told.includes(schema.format)) out.push(`Format: ${schema.format}`);
  if (schema.default !== undefined) out.push(`If left out: ${inLabel(schema.default)}`);
  if (Array.isArray(schema.examples) && schema.examples.length > 0) out.push(`For example: ${schema.examples.slice(0, 2).map(inLabel).join(", ")}`);
  return out;
}

/** Help and errors below a field. @param {Part} part @param {unknown} [more] */
function foot(part, more = nothing) {
  const all = hints(part);
  return html`<div id="h${part.id}">
    ${description(part)}${all.length > 0 ? html`<p class="help">${visible(all.join(" · "))}</p>` : nothing}${more}
    ${part.errors.map((text) => html`<p class="error">${visible(text)}</p>`)}
  </div>`;
}

/** @param {Form} form @param {Part} part @returns {(event: any) => void} */
function typed(form, part) {
  return (event) => {
    part.raw = event.target.value;
    part.bad = event.target.validity.badInput;
    part.given = false;
    form.changed(part);
  };
}

/** A time as a field of the browser has it: local, without an offset. @param {string} raw @returns {string | null} */
function local(raw) {
  if (raw === "") return "";
  const time = new Date(raw);
  if (!/T.*(?:Z|[+-]\d\d:\d\d)$/i.test(raw) || Number.isNaN(time.getTime())) return null;
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** @param {Form} form @param {Part} part @param {Said} said */
export function textField(form, part, said) {
  const { schema } = part.shape;
  const input = typed(form, part);
  const invalid = part.errors.length > 0;
  if (schema.format === "date-time") {
    const shown = local(part.raw);
    if (shown !== null) {
      const set = (/** @type {any} */ event) => {
        const time = new Date(event.target.value);
        part.raw = Number.isNaN(time.getTime()) ? "" : time.toISOString().replace(".000Z", "Z");
        part.bad = event.target.validity.badInput;
        form.changed(part);
      };
      return html`<div class="field">
        ${head(part, said)}
        <input id="p${part.id}" class="short" type="datetime-local" step="1" .value=${live(shown)} @change=${set}
          aria-required=${said.required} aria-invalid=${invalid} aria-describedby="h${part.id}">
        ${foot(part, part.raw ? html`<p class="help">Your time; sent as ${part.raw}</p>` : html`<p class="help">Your time</p>`)}
      </div>`;
    }
  }
  const isLong = schema.maxLength === undefined || schema.maxLength > MAX_SHORT || part.raw.includes("\n");
  const hidden = isPlain(part.raw) ? nothing : html`<p class="help">As it is sent: ${visible(part.raw)}</p>`;
  if (isLong && schema.format === undefined && (schema.pattern === undefined || schema.pattern === "\\S")) {
    return html`<div class="field">
      ${head(part, said)}
      <textarea id="p${part.id}" class=${schema.maxLength > 400 ? "long" : ""} rows="1" .value=${live(part.raw)} @input=${input}
        aria-required=${said.required} aria-invalid=${invalid} aria-describedby="h${part.id}"></textarea>
      ${foot(part, hidden)}
    </div>`;
  }
  const types = /** @type {Record<string, string>} */ ({ date: "date", email: "email", uri: "url" });
  // A field of a type drops what does not belong there; what is there already has to stay.
  const isDate = schema.format === "date" && (part.raw === "" || /^\d{4}-\d\d-\d\d$/.test(part.raw));
  const type = schema.format === "date" ? (isDate ? "date" : "text") : (types[schema.format] ?? "text");
  return html`<div class="field">
    ${head(part, said)}
    <input id="p${part.id}" class=${type === "date" ? "short" : ""} type=${type} .value=${live(part.raw)} @input=${input}
      autocomplete="off" spellcheck=${schema.format || schema.pattern ? "false" : nothing}
      aria-required=${said.required} aria-invalid=${invalid} aria-describedby="h${part.id}">
    ${foot(part, hidden)}
  </div>`;
}

/** Numbers are text here: a field of type `number` would round and reformat them. @param {Form} form @param {Part} part @param {Said} said */
export function numberField(form, part, said) {
  return html`<div class="field">
    ${head(part, said)}
    <input id="p${part.id}" class="short" inputmode=${part.kind === "integer" ? "numeric" : "decimal"} autocomplete="off" .value=${live(part.raw)}
      @input=${typed(form, part)} aria-required=${said.required} aria-invalid=${part.errors.length > 0} aria-describedby="h${part.id}">
    ${foot(part)}
  </div>`;
}

/** One of a few values, all of them seen. @param {Form} form @param {Part} part @param {Said} said @param {string[]} labels */
function radios(form, part, said, labels) {
  const all = said.required ? labels.map((label, index) => ({ label, index })) : [...labels.map((label, index) => ({ label, index })), { label: "not given", index: -1 }];
  return html`<fieldset class="choice" role="radiogroup" aria-required=${said.required} aria-invalid=${part.errors.length > 0} aria-describedby="h${part.id}">
    <legend class=${said.hidden ? "sr" : ""}><span class="label">${visible(said.label)}</span>${need(said)}</legend>
    <div class="options">
      ${all.map(({ label, index }, place) => {
        const choose = () => {
          part.index = index;
          form.changed(part);
        };
        return html`<label>
          <input type="radio" id=${place === 0 ? `p${part.id}` : nothing} name="n${part.id}" .checked=${live(part.index === index)} @change=${choose}>
          <span>${visible(label)}</span>
        </label>`;
      })}
    </div>
    ${foot(part)}
  </fieldset>`;
}

/** @param {Form} form @param {Part} part @param {Said} said */
export function booleanField(form, part, said) {
  // The index is 1 for yes.
  return radios(form, part, said, ["no", "yes"]);
}

/** @param {Form} form @param {Part} part @param {Said} said */
export function enumField(form, part, said) {
  const labels = (part.shape.values ?? []).map((value) => value.label);
  if (labels.length < MAX_RADIOS) return radios(form, part, said, labels);
  const choose = (/** @type {any} */ event) => {
    part.index = Number(event.target.value);
    form.changed(part);
  };
  return html`<div class="field">
    ${head(part, said)}
    <select id="p${part.id}" @change=${choose} aria-required=${said.required} aria-invalid=${part.errors.length > 0} aria-describedby="h${part.id}">
      <option value="-1" ?selected=${part.index < 0}>${said.required ? "Choose…" : "Not given"}</option>
      ${labels.map((label, index) => html`<option value=${index} ?selected=${part.index === index}>${marked(label)}</option>`)}
    </select>
    ${foot(part)}
  </div>`;
}

/** @param {Form} form @param {Part} part @param {Said} said */
export function jsonField(form, part, said) {
  const why = part.shape.why ?? "";
  return html`<div class="field">
    ${head(part, said)}
    <textarea id="p${part.id}" class="json" spellcheck="false" .value=${live(part.raw)} @input=${typed(form, part)}
      aria-required=${said.required} aria-invalid=${part.errors.length > 0} aria-describedby="h${part.id}"></textarea>
    ${foot(part, html`<p class="help">JSON, because ${visible(why)}.</p>`)}
  </div>`;
}
