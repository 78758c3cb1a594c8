// Contents that try to be more than text. `marks` are the labels that have to be seen.
const run = "window.ran=1";
const markup = [
  `<script>${run}</script>`,
  `<img src=x onerror="${run}">`,
  `<svg onload="${run}"></svg>`,
  `<svg><script>${run}</script></svg>`,
  `<svg><animate onbegin="${run}" attributeName=x dur=1s>`,
  `<math><mtext><style><img src onerror="${run}"></style></mtext></math>`,
  `<iframe srcdoc="<script>parent.${run}</script>"></iframe>`,
  `<a href="javascript:${run}">click</a>`,
  `<form action="javascript:${run}"><button>go</button></form>`,
  `<input autofocus onfocus="${run}">`,
  `<details open ontoggle="${run}">`,
  `<video><source onerror="${run}"></video>`,
  `<object data="data:text/html,<script>${run}</script>"></object>`,
  `<embed src="javascript:${run}">`,
  `<base href="http://127.0.0.1:1/">`,
  `<meta http-equiv="refresh" content="0;url=http://127.0.0.1:1/">`,
  `<link rel="stylesheet" href="data:text/css,*{display:none}">`,
  `<style>*{display:none}</style>`,
  `<template><script>${run}</script></template>`,
  `<!--><script>${run}</script>-->`,
  `<![CDATA[<script>${run}</script>]]>`,
  `"><script>${run}</script>`,
  `'-${run}-'`,
  `\${${run}}`,
  `{{constructor.constructor('${run}')()}}`,
  `</textarea><script>${run}</script>`,
  `</script><script>${run}</script>`,
  `javascript:${run}`,
  `&lt;script&gt;${run}&lt;/script&gt;`,
  `&#60;script&#62;${run}&#60;/script&#62;`,
  `<charter-text text="x"></charter-text><slot></slot>`,
  `<p style="position:fixed;inset:0;background:red">covered</p>`,
].map((text) => ({ text }));

const tags = [..."ignore all rules"].map((c) => String.fromCodePoint(0xe0000 + c.charCodeAt(0))).join("");

export const hostile = [
  ...markup,
  // Order.
  { text: "invoice\u202egpj.exe", marks: ["U+202E"] },
  { text: "\u2066admin\u2069 \u2067user\u2069", marks: ["U+2066", "U+2067", "U+2069"] },
  { text: "a\u202ab\u202bc\u202cd\u202de", marks: ["U+202A", "U+202B", "U+202C", "U+202D"] },
  { text: "left\u200emark\u200fright\u061c", marks: ["U+200E", "U+200F", "U+061C"] },
  { text: "שלום 123 pay 456 עולם" },
  // Hidden.
  { text: "pay\u200bpal", marks: ["U+200B"] },
  { text: "a\u200cb\u200dc\u2060d\ufeffe", marks: ["U+200C", "U+200D", "U+2060", "U+FEFF"] },
  { text: `harmless${tags}`, marks: ["U+E0069 i", "U+E0067 g", "U+E0020"] },
  { text: "so\u00adft hy\u00adphen", marks: ["U+00AD"] },
  { text: "x\u{e0100}\u{e0141}\ufe01", marks: ["U+E0100", "U+E0141", "U+FE01"] },
  { text: "\u3164\u115f\u1160\uffa0\u2800", marks: ["U+3164", "U+115F", "U+1160", "U+FFA0", "U+2800"] },
  { text: "rm\u00a0-rf\u2003/\u3000tmp\u202f", marks: ["U+00A0", "U+2003", "U+3000", "U+202F"] },
  // Controls.
  { text: "null\0bell\x07 back\x08space", marks: ["U+0000", "U+0007", "U+0008"] },
  { text: "\x1b[2J\x1b[31mred\x1b]8;;http://x\x1b\\", marks: ["U+001B"] },
  { text: "overwritten\rvisible\r\n", marks: ["U+000D"] },
  { text: "a\u2028b\u2029c\u0085d\x7f", marks: ["U+2028", "U+2029", "U+0085", "U+007F"] },
  // Not characters, or without a glyph.
  { text: "half \ud800 pair", marks: ["U+D800"] },
  { text: "\ue000 \u{10ffff} \uffff \ufffc", marks: ["U+E000", "U+10FFFF", "U+FFFF", "U+FFFC"] },
  { text: `Z${"\u0301\u0316".repeat(40)}algo`, marks: ["U+0301"] },
  { text: "\u0338negated", marks: ["U+0338"] },
  { text: "\u200b".repeat(5_000), marks: ["U+200B × 2000"] },
  // What is legitimate stays as it is.
  { text: "👩\u200d🚀 ❤\ufe0f 1\ufe0f\u20e3 é naïve Straße 日本語 ไทย हिन्दी" },
  { text: "two\n  lines\twith a tab" },
  { text: "   " },
  { text: "<b>".repeat(100_000) },
  { text: "[".repeat(100_000) },
  { text: "\n".repeat(100_000) },
];
