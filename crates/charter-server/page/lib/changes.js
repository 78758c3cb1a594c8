// Which places of a JSON value differ from those of another.
import { below } from "./pointer.js";

const MAX_CHANGES = 500;

/** @typedef {{path: string, before: any, after: any}} Change `before` or `after` is `undefined` if there was, or is, nothing. */

/** @param {any} value */
const isNested = (value) => typeof value === "object" && value !== null;

/** @param {any} before @param {any} after @param {string} path @param {Change[]} found */
function compare(before, after, path, found) {
  if (Object.is(before, after) || found.length >= MAX_CHANGES) return;
  if (!isNested(before) || !isNested(after) || Array.isArray(before) !== Array.isArray(after)) {
    found.push({ path, before, after });
    return;
  }
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    compare(before[key], after[key], below(path, key), found);
  }
}

/** The innermost places that differ, as JSON pointers; at most 500. @param {any} before @param {any} after @returns {Change[]} */
export function changesOf(before, after) {
  /** @type {Change[]} */
  const found = [];
  compare(before, after, "", found);
  return found;
}

/** These places and everything around them. @param {Change[]} changes @returns {Set<string>} */
export function marksOf(changes) {
  return new Set(changes.map(({ path }) => path));
}
