// Charts that the server draws, as elements of the page.
import { css } from "../lit.js";

const SVG = "http://www.w3.org/2000/svg";
/** The picture's own colors, which the policy of the page would refuse. */
const STYLE = /<style>[^<]*<\/style>/;
/** What a chart consists of; nothing else is taken from the picture. */
const ELEMENTS = new Set(["svg", "title", "defs", "marker", "g", "path", "rect", "circle", "text", "tspan"]);
const ATTRIBUTES =
  /^(?:viewBox|width|height|x|y|r|rx|ry|cx|cy|d|class|id|transform|text-anchor|marker(?:Width|Height)|refX|refY|orient|role)$/;

/** A copy with nothing but shapes and text. @param {Element} source @returns {SVGElement | null} */
function copy(source) {
  if (source.namespaceURI !== SVG || !ELEMENTS.has(source.localName)) return null;
  const made = document.createElementNS(SVG, source.localName);
  for (const { name, value } of source.attributes) if (ATTRIBUTES.test(name)) made.setAttribute(name, value);
  for (const child of source.childNodes) {
    const inner = child.nodeType === Node.TEXT_NODE ? document.createTextNode(child.nodeValue ?? "") : child instanceof Element ? copy(child) : null;
    if (inner) made.append(inner);
  }
  return /** @type {SVGElement} */ (made);
}

/** The picture of a text of SVG. @param {string} text @returns {SVGElement | null} */
export function pictureOf(text) {
  return copy(new DOMParser().parseFromString(text.replace(STYLE, ""), "image/svg+xml").documentElement);
}

/** Marks the labels of events that may be sent. @param {SVGElement | null} picture @param {Set<string>} legal */
export function markLegal(picture, legal) {
  for (const label of picture?.querySelectorAll("text.label, text.line") ?? []) {
    const event = /^(?:\d+\. )?([^\s[/]+)/.exec(label.textContent ?? "")?.[1] ?? "";
    label.classList.toggle("may", legal.has(event));
  }
}

/** The colors of a chart on the page. */
export const pictureStyles = css`
  svg { display: block; margin: 0 auto; max-width: 100%; height: auto; }
  .large svg { max-width: none; }
  text { font-family: system-ui, sans-serif; fill: var(--text); }
  .page { fill: none; }
  .name { display: none; }
  .title { font-size: 13px; font-weight: 600; }
  .line { font-size: 11px; fill: var(--faint); }
  .label { font-size: 11px; fill: var(--faint); }
  .label.may { fill: var(--accent); font-weight: 700; }
  .back { fill: var(--bg); fill-opacity: 0.88; }
  .state { fill: var(--surface); stroke: var(--strong-line); stroke-width: 1.2; }
  .group { fill: var(--strong-line); fill-opacity: 0.07; stroke: var(--strong-line); stroke-width: 1.2; }
  .region { stroke-dasharray: 6 4; }
  .inner { fill: none; stroke: var(--strong-line); stroke-width: 1.2; }
  .dot { fill: var(--text); }
  .arrow { fill: none; stroke: var(--strong-line); stroke-width: 1.2; marker-end: url(#head); }
  #head path { fill: var(--strong-line); }
  #head-taken path { fill: var(--good); }
  .taken { stroke: var(--good); stroke-width: 2.4; marker-end: url(#head-taken); }
  .active { fill: var(--good-bg); stroke: var(--good); stroke-width: 2.5; fill-opacity: 1; }
`;
