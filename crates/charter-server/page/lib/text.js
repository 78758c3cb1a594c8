// Text of others, shown exactly: as text, never as markup, with characters that hide or reorder it made visible.
import { LitElement, css, html } from "../lit.js";

/** A line is cut after this many characters, a text after so many lines and characters, until the reader asks for more. */
export const MAX_LINE = 2_000;
const MAX_LINES = 1_000;
const MAX_TEXT = 20_000;
/** What the button reveals at least, and how the amount grows. */
const STEP = 10;
/** Longest run of combining marks on one letter; more of them would cover other lines. */
const MAX_COMBINING = 4;
/** Repetitions of one character that are marked one by one. */
const MAX_REPEATED = 3;

/**
 * What no reader can see, or what changes the order of what is seen: controls, marks of direction, characters without
 * a width, tags, spaces that are not the common one, and what has no glyph.
 */
const HIDDEN =
  /[\p{Cc}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Zs}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\u2800\ufff9-\ufffc]/u;
const COMBINING = /\p{M}/u;
/** Letters that are written from right to left. */
const RIGHT_TO_LEFT = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u;
const PICTOGRAPH = /\p{Extended_Pictographic}/u;
/** Text of one line in which nothing can be hidden. */
const HARMLESS = /^[\x21-\x7e\u00a1-\u00ac\u00ae-\u02ff](?:[\x20-\x7e\u00a1-\u00ac\u00ae-\u02ff]*[\x21-\x7e\u00a1-\u00ac\u00ae-\u02ff])?$/;

/** @type {Record<number, string>} */
const NAMES = {
  0x00: "null", 0x07: "bell", 0x08: "backspace", 0x0b: "vertical tab", 0x0c: "form feed", 0x0d: "carriage return",
  0x1b: "escape", 0x7f: "delete", 0x85: "next line", 0xa0: "no-break space", 0xad: "soft hyphen",
  0x61c: "Arabic letter mark", 0x200b: "zero-width space", 0x200c: "zero-width non-joiner", 0x200d: "zero-width joiner",
  0x200e: "left-to-right mark", 0x200f: "right-to-left mark", 0x2028: "line separator", 0x2029: "paragraph separator",
  0x202a: "left-to-right embedding", 0x202b: "right-to-left embedding", 0x202c: "end of embedding or override",
  0x202d: "left-to-right override", 0x202e: "right-to-left override", 0x202f: "narrow no-break space",
  0x2060: "word joiner", 0x2066: "left-to-right isolate", 0x2067: "right-to-left isolate", 0x2068: "first strong isolate",
  0x2069: "end of isolate", 0x2800: "empty Braille pattern", 0x3000: "ideographic space", 0x3164: "Hangul filler",
  0xfeff: "byte order mark", 0xfffc: "object replacement",
};

/** @param {number} code @returns {string} */
function nameOf(code) {
  const char = String.fromCodePoint(code);
  if (NAMES[code]) return NAMES[code];
  if (code >= 0xe0000 && code <= 0xe007f) {
    return code > 0xe0020 && code < 0xe007f ? `tag character ${String.fromCharCode(code - 0xe0000)}` : "tag character";
  }
  if (/\p{Variation_Selector}/u.test(char)) return "variation selector";
  if (/\p{Cc}/u.test(char)) return "control character";
  if (/\p{Cs}/u.test(char)) return "half of a surrogate pair";
  if (/\p{Co}/u.test(char)) return "private use";
  if (/\p{Zs}/u.test(char)) return "unusual space";
  if (/\p{M}/u.test(char)) return "combining mark";
  if (/\p{Cn}/u.test(char)) return "not assigned";
  return "invisible character";
}

/**
 * A piece of a text: plain text, or a character that is shown by its number (`count` times).
 * @typedef {{text: string} | {mark: string, name: string, count: number}} Piece
 */

/** The label of a character: `U+202E`; of a tag character with the letter that it stands for. @param {number} code */
function label(code) {
  const number = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  const tag = code > 0xe0020 && code < 0xe007f ? ` ${String.fromCharCode(code - 0xe0000)}` : "";
  return number + tag;
}

/** Splits a text into what is shown as it is and what is shown by its number. @param {string} text @returns {Piece[]} */
export function pieces(text) {
  if (HARMLESS.test(text)) return [{ text }];
  /** @type {Piece[]} */
  const out = [];
  let plain = "";
  let combining = 0;
  let before = "\n";
  const flush = () => {
    if (plain) out.push({ text: plain });
    plain = "";
  };
  const chars = Array.from(text);
  chars.forEach((char, index) => {
    combining = COMBINING.test(char) ? combining + 1 : 0;
    if (isShown(char, before, chars[index + 1] ?? "", combining)) {
      plain += char;
    } else {
      flush();
      const code = /** @type {number} */ (char.codePointAt(0));
      const mark = label(code);
      const last = out.at(-1);
      if (last && "mark" in last && last.mark === mark) last.count += 1;
      else out.push({ mark, name: nameOf(code), count: 1 });
    }
    before = char;
  });
  flush();
  return out;
}

/**
 * Whether a character is shown as it is.
 * @param {string} char @param {string} before @param {string} next
 * @param {number} combining how many combining marks in a row this is
 */
function isShown(char, before, next, combining) {
  if (char === "\n" || char === "\t" || char === " ") return true;
  // Emoji are joined, and chosen, by characters that would hide something elsewhere.
  if (char === "\u200d") return (PICTOGRAPH.test(before) || before === "\ufe0f") && PICTOGRAPH.test(next);
  if (char === "\ufe0f" || char === "\ufe0e") return PICTOGRAPH.test(before) || /[#*0-9]/.test(before);
  if (combining > 0) {
    // Without a letter it would change what stands before the text.
    if (combining === 1 && HIDDEN.test(before)) return false;
    return combining <= MAX_COMBINING && !HIDDEN.test(char);
  }
  return !HIDDEN.test(char);
}

/** The marks inside a text, as they are shown. @param {Piece[]} all @returns {unknown[]} */
function draw(all) {
  return all.map((piece) => {
    if ("text" in piece) return piece.text;
    const mark = () => html`<span class="mark" title=${piece.name}>${piece.mark}</span>`;
    if (piece.count <= MAX_REPEATED) return Array.from({ length: piece.count }, mark);
    return html`<span class="mark" title="${piece.name}, ${piece.count} times">${piece.mark} × ${piece.count}</span>`;
  });
}

/** One line, without a cut: for components that draw their own lines and have the styles `markStyles`. @param {string} text */
export function line(text) {
  return HARMLESS.test(text) ? text : draw(pieces(text));
}

/** The same where only plain text can stand, in an attribute or an option: `a[U+202E]b`. @param {string} text @returns {string} */
export function marked(text) {
  if (HARMLESS.test(text)) return text;
  return pieces(text)
    .map((piece) => ("text" in piece ? piece.text : `[${piece.mark}]${piece.count > 1 ? `×${piece.count}` : ""}`))
    .join("");
}

/** Whether all characters of a text are seen as they are. @param {string} text @returns {boolean} */
export function isPlain(text) {
  return HARMLESS.test(text) || pieces(text).every((piece) => "text" in piece);
}

/**
 * A text of others, for a template of lit: exactly its characters, as text. What could hide something is shown by its
 * number, and what is long is cut, with a button to see more.
 * @param {unknown} text
 * @returns {any}
 */
export function visible(text) {
  const string = String(text ?? "");
  if (string.length <= 400 && HARMLESS.test(string)) return string;
  return html`<charter-text .text=${string}></charter-text>`;
}

/** The looks of marked characters. */
export const markStyles = css`
  .mark {
    font: 600 0.78em/1.2 var(--mono, ui-monospace, monospace); padding: 0 0.25em; margin: 0 0.1em; border-radius: 3px;
    white-space: nowrap; unicode-bidi: isolate; direction: ltr; display: inline-block;
    color: var(--warn, light-dark(#7c4a00, #e7b562)); background: var(--warn-bg, light-dark(#fff4dc, #2e2410));
    outline: 1px solid currentColor; outline-offset: -1px;
  }
`;

/**
 * Text of others, cut if it is long. Property and attribute `text`; CSS part `more` (the buttons). The element's own
 * children are not shown.
 */
export class CharterText extends LitElement {
  static properties = { text: { type: String }, shown: { state: true } };

  static styles = [
    markStyles,
    css`
      :host { white-space: pre-wrap; overflow-wrap: anywhere; tab-size: 4; }
      bdi { unicode-bidi: isolate; }
      button {
        font: inherit; font-size: 0.85em; color: var(--accent, light-dark(#0b5cad, #74b4f4)); background: none; border: 1px solid currentColor;
        border-radius: 4px; padding: 0 0.4em; margin: 0 0.2em; cursor: pointer; min-height: 24px; max-width: 100%;
      }
      :focus-visible { outline: 2px solid var(--accent, light-dark(#0b5cad, #74b4f4)); outline-offset: 2px; }
    `,
  ];

  constructor() {
    super();
    this.text = "";
    /** How much of the text is shown: a factor of the limits. */
    this.shown = 1;
  }

  /** @param {Map<string, unknown>} changed */
  willUpdate(changed) {
    if (changed.has("text") && !changed.has("shown")) this.shown = 1;
  }

  render() {
    const text = String(this.text ?? "");
    const [lines, rest] = cut(text, this.shown);
    return lines.map((line, index) => {
      const last = index === lines.length - 1;
      const end = last ? "" : "\n";
      const drawn = RIGHT_TO_LEFT.test(line.text) ? html`<bdi dir="auto">${draw(pieces(line.text))}</bdi>` : draw(pieces(line.text));
      const more = line.hidden + (last ? rest : 0);
      return html`${drawn}${more ? this.#more(more) : ""}${end}`;
    });
  }

  /** @param {number} hidden */
  #more(hidden) {
    const label = `Show more (${hidden.toLocaleString("en")} characters hidden)`;
    return html`<button part="more" type="button" @click=${() => (this.shown *= STEP)}>${label}</button>`;
  }
}

/**
 * The lines of a text that are shown, with what each hides, and how many characters come after them.
 * @param {string} text @param {number} factor
 * @returns {[{text: string, hidden: number}[], number]}
 */
export function cut(text, factor) {
  /** @type {{text: string, hidden: number}[]} */
  const lines = [];
  let at = 0;
  let room = MAX_TEXT * factor;
  while (at <= text.length && lines.length < MAX_LINES * factor && room > 0) {
    const newline = text.indexOf("\n", at);
    const end = newline < 0 ? text.length : newline;
    const limit = Math.min(end - at, MAX_LINE * factor, room);
    // Not between the halves of a surrogate pair.
    const split = limit < end - at && /[\ud800-\udbff]/.test(text[at + limit - 1]) ? limit - 1 : limit;
    const length = Math.max(split, Math.min(1, end - at));
    lines.push({ text: text.slice(at, at + length), hidden: end - at - length });
    room -= length + 1;
    at = end + 1;
  }
  return [lines, Math.max(0, text.length - at)];
}

if (!customElements.get("charter-text")) customElements.define("charter-text", CharterText);
