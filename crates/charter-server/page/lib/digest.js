// Digests of JSON values, as the kernel computes them, and of a part of a changeset.

/**
 * Canonical JSON (RFC 8785). Names that are numbers come first in objects of JavaScript, whatever order they are put in,
 * so objects are written here.
 * @param {any} value @returns {string}
 */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{${Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(",")}}`;
}

/** The SHA-256 of a text. @param {string} text @returns {Promise<string>} */
export async function sha256(text) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return `sha256:${[...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/**
 * Whether digests can be computed here as the server has computed one: browsers do on https or on the same machine, and
 * numbers beyond 2^53 are lost in JavaScript.
 * @param {any} value @param {string} digest @returns {Promise<boolean>}
 */
export async function canDigest(value, digest) {
  return Boolean(globalThis.crypto?.subtle) && (await sha256(canonical(value))) === digest;
}

/**
 * What an event approves if only some changes of a changeset are accepted.
 * @param {import("./contents.js").Changeset} value @param {(path: string) => boolean} isAccepted
 * @returns {Promise<{digest: string, accepted: string[]}>}
 */
export async function partOf(value, isAccepted) {
  const changes = value.changes.filter((change) => isAccepted(change.file_path));
  const digest = await sha256(canonical({ summary: value.summary ?? null, changes }));
  return { digest, accepted: [...new Set(changes.map((change) => change.file_path))] };
}
