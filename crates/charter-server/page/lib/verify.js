// The hashes of a run, computed again by the browser: each record has the hash of its text, and of the one before.
import { sha256 } from "./digest.js";
import { elements } from "./run.js";

/**
 * Verifies records from their texts. A record is canonical JSON (RFC 8785); its hash is that of the text without the
 * member `hash`. Returns how many there are, the last hash, and what is wrong, if anything.
 * @param {string[]} texts @param {string} prev The hash of the record before. @param {number} from The number of the first one.
 * @returns {Promise<{count: number, last: string, wrong: string | null}>}
 */
export async function verifyTexts(texts, prev, from) {
  let last = prev;
  for (const [index, text] of texts.entries()) {
    const record = JSON.parse(text);
    const seq = from + index;
    const bare = text.replace(`"hash":"${record.hash}",`, "");
    const wrong =
      record.seq !== seq
        ? `record ${seq} is missing`
        : record.prev !== last
          ? `record ${seq} does not follow the one before it`
          : (await sha256(bare)) !== record.hash
            ? `record ${seq} is not what was hashed`
            : null;
    if (wrong) return { count: seq, last, wrong };
    last = record.hash;
  }
  return { count: from + texts.length, last, wrong: null };
}

/**
 * Verifies all records of a run.
 * @param {import("./api.js").Client} client @param {string} run @param {(count: number) => void} [progress]
 */
export async function verifyRun(client, run, progress = () => {}) {
  let last = `sha256:${"0".repeat(64)}`;
  let count = 0;
  for (;;) {
    const after = count ? `&after=${count - 1}` : "";
    const text = await client.text(`/v1/runs/${encodeURIComponent(run)}/records?limit=500${after}`);
    const found = await verifyTexts(elements(text), last, count);
    if (found.wrong) return found;
    ({ count, last } = found);
    progress(count);
    if (JSON.parse(text).after === undefined) return found;
  }
}
