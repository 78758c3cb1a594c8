// Colors, and the looks of what all components have: buttons, fields, tables, notes.
import { css } from "../lit.js";

/** Colors follow `color-scheme`; a page that embeds a component may set `--charter-accent` and others. */
export const tokens = css`
  :host {
    --bg: var(--charter-bg, light-dark(#ffffff, #0f1216));
    --surface: var(--charter-surface, light-dark(#f5f6f8, #171b21));
    --line: var(--charter-line, light-dark(#d5d9df, #2d343d));
    --strong-line: light-dark(#868e98, #6d7783);
    --text: var(--charter-text, light-dark(#1b1f24, #e4e7eb));
    --faint: light-dark(#57606a, #9aa4af);
    --accent: var(--charter-accent, light-dark(#0b5cad, #74b4f4));
    --on-accent: light-dark(#ffffff, #0b1420);
    --good: light-dark(#17692b, #63c97b);
    --good-bg: light-dark(#e3f5e7, #12291a);
    --bad: light-dark(#a8201a, #ff938a);
    --bad-bg: light-dark(#fdecea, #331614);
    --warn: light-dark(#7c4a00, #e7b562);
    --warn-bg: light-dark(#fff4dc, #2e2410);
    --mono: ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, monospace;
    color: var(--text);
    font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  }
`;

export const shared = [
  tokens,
  css`
    :host { display: block; }
    :host([hidden]), [hidden] { display: none !important; }
    *, *::before, *::after { box-sizing: border-box; }
    h1, h2, h3, p, dl, dd, ul, ol, figure, pre { margin: 0; padding: 0; }
    h1 { font-size: 1.35rem; line-height: 1.3; font-weight: 650; }
    h2 { font-size: 1.05rem; line-height: 1.4; font-weight: 650; }
    h3 { font-size: 0.95rem; line-height: 1.4; font-weight: 650; }
    ul, ol { list-style: none; }
    a { color: var(--accent); text-underline-offset: 0.15em; }
    code, pre, .mono { font-family: var(--mono); font-size: 0.88em; }
    .faint { color: var(--faint); }
    .small { font-size: 0.87rem; }
    .row { display: flex; flex-wrap: wrap; align-items: center; gap: 0.5rem 0.75rem; }
    .grow { flex: 1 1 auto; min-width: 0; }
    .wrap { overflow-wrap: anywhere; }
    :focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
    button, .button {
      font: inherit; color: var(--text); background: var(--bg); border: 1px solid var(--strong-line); border-radius: 6px;
      padding: 0.25rem 0.8rem; min-height: 2.1rem; cursor: pointer; text-decoration: none;
    }
    button:hover:not(:disabled) { background: var(--surface); }
    button:disabled { color: var(--faint); border-style: dashed; cursor: not-allowed; }
    button.main { background: var(--accent); border-color: var(--accent); color: var(--on-accent); font-weight: 600; }
    button.main:hover:not(:disabled) { background: color-mix(in srgb, var(--accent) 88%, var(--text)); }
    button.main:disabled { background: var(--surface); color: var(--faint); border-color: var(--strong-line); }
    button.plain { border-color: transparent; background: none; color: var(--accent); padding-inline: 0.35rem; }
    input, select, textarea {
      font: inherit; color: var(--text); background: var(--bg); border: 1px solid var(--strong-line); border-radius: 6px;
      padding: 0.3rem 0.5rem; min-height: 2.1rem; max-width: 100%;
    }
    textarea { width: 100%; min-height: 5rem; font-family: var(--mono); font-size: 0.88rem; }
    label { display: block; }
    .note { border-left: 3px solid var(--strong-line); background: var(--surface); padding: 0.5rem 0.75rem; border-radius: 0 6px 6px 0; }
    .note.bad { border-color: var(--bad); background: var(--bad-bg); }
    .note.good { border-color: var(--good); background: var(--good-bg); }
    .note.warn { border-color: var(--warn); background: var(--warn-bg); }
    .tag { display: inline-block; border: 1px solid var(--line); border-radius: 99px; padding: 0 0.55rem; font-size: 0.82rem; white-space: nowrap; }
    .tag.good { color: var(--good); border-color: currentColor; }
    .tag.bad { color: var(--bad); border-color: currentColor; }
    .tag.warn { color: var(--warn); border-color: currentColor; }
    .card { border: 1px solid var(--line); border-radius: 10px; background: var(--bg); }
    .block { font-family: var(--mono); font-size: 0.86rem; white-space: pre-wrap; overflow-wrap: anywhere; background: var(--surface);
      border: 1px solid var(--line); border-radius: 6px; padding: 0.6rem 0.75rem; max-height: 24rem; overflow: auto; }
    dl.facts { display: grid; grid-template-columns: minmax(5rem, max-content) minmax(0, 1fr); gap: 0.2rem 1rem; }
    dl.facts dt { color: var(--faint); }
    dl.facts dd { overflow-wrap: anywhere; }
    .sr { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
    @media print {
      button, .button { display: none !important; }
      .block, .content { max-height: none !important; }
    }
    @media (prefers-reduced-motion: no-preference) {
      button { transition: background 0.1s; }
    }
  `,
];
