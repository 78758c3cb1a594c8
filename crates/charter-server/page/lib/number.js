// Numbers as people write them, to numbers of JSON: exactly, or not at all.

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** Digits and exponent of a decimal, so that equal numbers have equal texts. @param {string} text @returns {string} */
function decimal(text) {
  const [, sign, whole, fraction = "", exponent = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? ["", "", text];
  const digits = (whole + fraction).replace(/^0+/, "");
  const kept = digits.replace(/0+$/, "");
  if (kept === "") return "0";
  return `${sign}${kept}e${BigInt(exponent) - BigInt(fraction.length) + BigInt(digits.length - kept.length)}`;
}

/**
 * The number that a text is, or why it cannot be sent.
 * @param {string} text @param {boolean} isWhole
 * @returns {{value: number} | {error: string}}
 */
export function numberOf(text, isWhole) {
  const trimmed = text.trim();
  if (trimmed.length > 400 || !NUMBER.test(trimmed)) return { error: isWhole ? "a whole number, such as 12" : "a number, such as 12 or 0.5" };
  const value = Number(trimmed);
  if (!Number.isFinite(value)) return { error: "this number is too large to be sent" };
  const isInteger = Number.isInteger(value);
  if (isInteger && !Number.isSafeInteger(value) && (isWhole || !/e/i.test(trimmed))) {
    return { error: "a whole number beyond 9007199254740991 cannot be sent exactly from this page; send it with a program" };
  }
  if (decimal(trimmed) !== decimal(String(value))) {
    return { error: `this number has more digits than can be sent exactly; the nearest one is ${value}` };
  }
  if (isWhole && !isInteger) return { error: "a whole number, such as 12" };
  return { value: Object.is(value, -0) ? 0 : value };
}
