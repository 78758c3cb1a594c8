// JSON pointers, and the places that a refusal names with them.

/** @typedef {{pointer: string, message: string}} PointedError */

/** One more part of a pointer. @param {string} pointer @param {string | number} name */
export function below(pointer, name) {
  return `${pointer}/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`;
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
