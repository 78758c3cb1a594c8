// Changesets in the data of a run, and the contents of their files.
import { problemOf } from "./api.js";

/** Bytes of all contents that are shown at once, and requests at the same time. */
const MAX_BYTES = 8 << 20;
const AT_ONCE = 4;

/**
 * @typedef {{operation: string, file_path: string, old_sha256?: string, new_sha256?: string, size?: number}} FileChange
 * @typedef {{summary?: string, changes: FileChange[]}} Changeset
 * @typedef {import("./diff-rows.js").ChangedFile} ChangedFile
 */

/** @param {any} value */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** Whether a value is a changeset: operations, paths, and the digests of contents. @param {any} value @returns {value is Changeset} */
export function isChangeset(value) {
  const isChange = (/** @type {any} */ change) => isObject(change) && typeof change.file_path === "string" && typeof change.operation === "string";
  return isObject(value) && Array.isArray(value.changes) && value.changes.length > 0 && value.changes.every(isChange);
}

/**
 * Whether an event approves a changeset, or the part of it that `accepted` names.
 * @param {any} event As in the inbox or in the legal events. @returns {boolean}
 */
export function takesPart(event) {
  return Boolean(event.demands?.approves) && isChangeset(event.value) && event.data?.properties?.accepted?.type === "array";
}

/** The changesets of a value: itself, or its members, each once. @param {any} value @returns {{name: string, value: Changeset}[]} */
export function changesetsOf(value) {
  if (isChangeset(value)) return [{ name: "", value }];
  const found = new Map();
  for (const [name, inner] of isObject(value) ? Object.entries(value) : []) {
    if (isChangeset(inner)) found.set(JSON.stringify(inner), { name, value: inner });
  }
  return [...found.values()];
}

/** @param {Uint8Array} bytes @returns {string | null} */
function textOf(bytes) {
  if (bytes.includes(0)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/**
 * Reads the contents before and after of changed files. What cannot be shown is in `notes`, with the reason.
 * @param {import("./api.js").Client} client
 * @param {string} run
 * @param {number} at The record after which the data of the run name the contents.
 * @param {FileChange[]} changes
 * @returns {Promise<{files: ChangedFile[], notes: {path: string, why: string}[]}>}
 */
export async function contentsOf(client, run, at, changes) {
  let left = MAX_BYTES;
  const read = async (/** @type {string | undefined} */ digest) => {
    if (!digest) return null;
    if (left <= 0) throw new Error("too much to be shown at once");
    const response = await client.fetch(`/v1/runs/${encodeURIComponent(run)}/blobs/${encodeURIComponent(digest)}?at=${at}`);
    const bytes = new Uint8Array(await response.arrayBuffer());
    left -= bytes.length;
    const text = textOf(bytes);
    if (text === null) throw new Error(`not text (${bytes.length.toLocaleString("en")} bytes)`);
    return text;
  };
  /** @type {(ChangedFile | {path: string, why: string})[]} */
  const found = [];
  const queue = [...changes.entries()];
  const work = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const [index, { operation, file_path: path, old_sha256, new_sha256 }] = next;
      try {
        const [before, after] = [await read(old_sha256), await read(new_sha256)];
        found[index] = { path, operation, before, after };
      } catch (error) {
        found[index] = { path, why: problemOf(error).detail };
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return {
    files: /** @type {ChangedFile[]} */ (found.filter((one) => !("why" in one))),
    notes: /** @type {{path: string, why: string}[]} */ (found.filter((one) => "why" in one)),
  };
}
