// Forms from the schemas of events: what a page needs to show one, and to show what the server answers.
import "../components/charter-form.js";
import { below } from "./draft.js";

/** @typedef {{pointer: string, message: string}} PointedError */

/**
 * A form for data of a schema. It sends `submit` with the data as `detail`, when they can be sent.
 * @param {import("./schema.js").Schema | boolean} schema
 * @param {{value?: unknown, errors?: PointedError[], label?: string}} [options] `value`: what it begins with;
 *   `label`: of the button.
 * @returns {import("../components/charter-form.js").CharterForm}
 */
export function formFor(schema, { value, errors, label } = {}) {
  const form = /** @type {import("../components/charter-form.js").CharterForm} */ (document.createElement("charter-form"));
  form.schema = schema;
  form.value = value;
  if (label) form.label = label;
  if (errors?.length) form.showErrors(errors);
  return form;
}

/**
 * The errors of a refusal `schema`, each at its field, from the problem details that the server answers.
 * @param {Record<string, any>} problem
 * @returns {PointedError[]}
 */
export function errorsOf(problem) {
  const misfits = problem?.refusal?.misfits;
  if (!Array.isArray(misfits)) return [];
  const recorded = problem?.record?.refusal?.misfits;
  return misfits.map((misfit, index) => {
    const at = String(misfit.at ?? "");
    const missing = recorded?.[index]?.limit;
    const isMissing = String(misfit.rule ?? "").endsWith("/required") && typeof missing === "string";
    const pointer = isMissing ? below(at, missing) : at;
    return { pointer, message: isMissing ? "required" : String(misfit.message ?? "does not match the schema") };
  });
}
