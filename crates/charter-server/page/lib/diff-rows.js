// Differences as rows: of two texts, of the files of a changeset, of a unified diff, of two JSON values.
import { blocks, jsonChanges } from "./diff.js";

/** Lines of one text that are shown. */
export const MAX_LINES = 200_000;

/**
 * A row. `pair` is the line on the other side that it replaces or is replaced by; `old` and `new` are line numbers.
 * @typedef {{
 *   kind: "same" | "added" | "removed" | "note" | "file" | "path" | "gap",
 *   text: string, old?: number, new?: number, pair?: string, file?: number, hidden?: [number, number],
 * }} Row
 */
/** A file of a changeset; a text that is not there is `null`. @typedef {{path: string, operation?: string, before?: string | null, after?: string | null}} ChangedFile */
/** A file of a difference. @typedef {{path: string, operation: string, added: number, removed: number, rows: Row[]}} FileRows */

/** The lines of a text, and whether the last one ends with a newline. @param {string} text @returns {{lines: string[], isEnded: boolean, more: number}} */
function linesOf(text) {
  if (text === "") return { lines: [], isEnded: true, more: 0 };
  const lines = text.split("\n", MAX_LINES + 1);
  const isEnded = text.endsWith("\n");
  if (lines.length > MAX_LINES) return { lines: lines.slice(0, MAX_LINES), isEnded: true, more: text.split("\n").length - MAX_LINES };
  if (isEnded) lines.pop();
  return { lines, isEnded, more: 0 };
}

/** The rows of two texts. @param {string} before @param {string} after @returns {Row[]} */
export function textRows(before, after) {
  const [a, b] = [linesOf(before), linesOf(after)];
  // A last line without a newline is another line than one with it.
  const compared = (/** @type {typeof a} */ side) => (side.isEnded ? side.lines : [...side.lines.slice(0, -1), `${side.lines.at(-1)}\n`]);
  /** @type {Row[]} */
  const rows = [];
  const push = (/** @type {Row} */ row, /** @type {typeof a} */ side, /** @type {number} */ index) => {
    rows.push(row);
    if (!side.isEnded && index === side.lines.length - 1) rows.push({ kind: "note", text: "no newline at the end" });
  };
  for (const block of blocks(compared(a), compared(b))) {
    if (block.same) {
      for (let at = 0; at < block.aEnd - block.a; at += 1) {
        push({ kind: "same", text: a.lines[block.a + at], old: block.a + at + 1, new: block.b + at + 1 }, a, block.a + at);
      }
      continue;
    }
    for (let at = block.a; at < block.aEnd; at += 1) {
      push({ kind: "removed", text: a.lines[at], old: at + 1, pair: b.lines[block.b + at - block.a] && at - block.a < block.bEnd - block.b ? b.lines[block.b + at - block.a] : undefined }, a, at);
    }
    for (let at = block.b; at < block.bEnd; at += 1) {
      push({ kind: "added", text: b.lines[at], new: at + 1, pair: at - block.b < block.aEnd - block.a ? a.lines[block.a + at - block.b] : undefined }, b, at);
    }
  }
  for (const [side, name] of /** @type {const} */ ([[a, "before"], [b, "after"]])) {
    if (side.more > 0) rows.push({ kind: "note", text: `${side.more} more lines ${name}, neither compared nor shown` });
  }
  return rows;
}

/** @param {string} path @param {string} operation @param {Row[]} rows @returns {FileRows} */
function counted(path, operation, rows) {
  const count = (/** @type {Row["kind"]} */ kind) => rows.reduce((sum, row) => sum + Number(row.kind === kind), 0);
  return { path, operation, added: count("added"), removed: count("removed"), rows };
}

/** @param {ChangedFile} file @returns {FileRows} */
export function fileRows({ path, operation, before = null, after = null }) {
  const implied = before === null ? "create" : after === null ? "delete" : "modify";
  return counted(path, (operation ?? implied).toLowerCase(), textRows(before ?? "", after ?? ""));
}

/** What the text of a value is; deeply nested values have none. @param {unknown} value @returns {string[]} */
function printed(value) {
  try {
    return (JSON.stringify(value, null, 2) ?? "").split("\n");
  } catch {
    return ["(nested too deeply to be shown)"];
  }
}

/** The rows of two JSON values: each part that differs, by its path. @param {unknown} before @param {unknown} after @returns {FileRows} */
export function jsonRows(before, after) {
  /** @type {Row[]} */
  const rows = [];
  for (const change of jsonChanges(before, after)) {
    const what = change.before === undefined ? "added" : change.after === undefined ? "removed" : "changed";
    rows.push({ kind: "path", text: `${change.pointer || "the whole value"}: ${what}` });
    const [old, now] = [change.before, change.after].map((value) => (value === undefined ? [] : printed(value)));
    const isPair = old.length === 1 && now.length === 1;
    for (const text of old) rows.push({ kind: "removed", text, pair: isPair ? now[0] : undefined });
    for (const text of now) rows.push({ kind: "added", text, pair: isPair ? old[0] : undefined });
  }
  return counted("", "modify", rows);
}

/** @param {string} line @param {string} prefix */
function pathIn(line, prefix) {
  const path = line.slice(prefix.length).replace(/\t.*$/, "");
  return path === "/dev/null" ? null : path.replace(/^[ab]\//, "");
}

/**
 * The files of a unified diff. Nothing is left out: what is not understood is shown as a note.
 * @param {string} patch
 * @returns {FileRows[]}
 */
export function patchRows(patch) {
  const { lines, more } = linesOf(patch);
  /** @type {{path: string | null, to: string | null, operation: string, rows: Row[]}[]} */
  const files = [];
  /** @type {typeof files[number]} */
  let file = { path: "", to: "", operation: "modify", rows: [] };
  const next = () => files.push((file = { path: "", to: "", operation: "modify", rows: [] }));
  let [old, now, oldLeft, nowLeft] = [0, 0, 0, 0];
  lines.forEach((line, index) => {
    if (oldLeft > 0 || nowLeft > 0) {
      // Within a hunk a line is what its first character says, whatever follows.
      const text = line.slice(1);
      if (line[0] === "-") [oldLeft] = [oldLeft - 1, file.rows.push({ kind: "removed", text, old: old++ })];
      else if (line[0] === "+") [nowLeft] = [nowLeft - 1, file.rows.push({ kind: "added", text, new: now++ })];
      else if (line[0] === " " || line === "") [oldLeft, nowLeft] = [oldLeft - 1, nowLeft - 1, file.rows.push({ kind: "same", text, old: old++, new: now++ })];
      else file.rows.push({ kind: "note", text: line });
      return;
    }
    const hunk = /^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@/.exec(line);
    if (hunk) {
      if (files.length === 0) next();
      [old, now] = [Number(hunk[1]), Number(hunk[3])];
      [oldLeft, nowLeft] = [Number(hunk[2] ?? 1), Number(hunk[4] ?? 1)];
      file.rows.push({ kind: "note", text: line });
    } else if (line.startsWith("diff --git ")) {
      next();
      const names = /^diff --git a\/(.*) b\/(.*)$/.exec(line);
      file.path = file.to = names?.[2] ?? "";
    } else if (line.startsWith("--- ") && lines[index + 1]?.startsWith("+++ ")) {
      if (files.length === 0 || file.rows.some((row) => row.kind !== "note")) next();
      file.path = pathIn(line, "--- ");
    } else if (line.startsWith("+++ ") && lines[index - 1]?.startsWith("--- ")) {
      file.to = pathIn(line, "+++ ");
      if (file.path === null) file.operation = "create";
      else if (file.to === null) file.operation = "delete";
    } else if (line.startsWith("new file mode ")) file.operation = "create";
    else if (line.startsWith("deleted file mode ")) file.operation = "delete";
    else if (line.startsWith("rename to ")) [file.operation, file.to] = ["rename", line.slice("rename to ".length)];
    else if (line.startsWith("index ") || line === "") return;
    else {
      if (files.length === 0) next();
      file.rows.push({ kind: "note", text: line });
    }
  });
  if (more > 0) file.rows.push({ kind: "note", text: `${more} more lines, not shown` });
  return files.map((one) => {
    pairUp(one.rows);
    return counted(one.to ?? one.path ?? "", one.operation, one.rows);
  });
}

/** Removed lines that added lines follow are their pairs, in order. @param {Row[]} rows */
function pairUp(rows) {
  for (let at = 0; at < rows.length; ) {
    let middle = at;
    while (rows[middle]?.kind === "removed") middle += 1;
    let end = middle;
    while (rows[end]?.kind === "added") end += 1;
    const count = Math.min(middle - at, end - middle);
    for (let index = 0; index < count; index += 1) {
      const [removed, added] = [rows[at + index], rows[middle + index]];
      [removed.pair, added.pair] = [added.text, removed.text];
    }
    at = Math.max(end, at + 1);
  }
}

/**
 * All rows that are shown: the files after each other, long ranges without a change as one row, unless they are opened.
 * @param {FileRows[]} files @param {number} context lines around a change @param {Set<string>} opened
 * @returns {Row[]}
 */
export function shownRows(files, context, opened) {
  /** @type {Row[]} */
  const out = [];
  files.forEach((file, index) => {
    if (files.length > 1 || file.path !== "") out.push({ kind: "file", text: file.path, file: index });
    for (let at = 0; at < file.rows.length; ) {
      let end = at;
      while (end < file.rows.length && file.rows[end].kind === "same") end += 1;
      if (end === at) {
        out.push(file.rows[at]);
        at += 1;
        continue;
      }
      const from = at === 0 ? at : at + context;
      const to = end === file.rows.length ? end : end - context;
      if (to - from > 3 && !opened.has(`${index}:${from}`)) {
        out.push(...file.rows.slice(at, from));
        out.push({ kind: "gap", text: `${index}:${from}`, hidden: [from, to], file: index });
        out.push(...file.rows.slice(to, end));
      } else {
        // Not by spreading: there may be more rows than a call may have arguments.
        for (let row = at; row < end; row += 1) out.push(file.rows[row]);
      }
      at = end;
    }
  });
  return out;
}
