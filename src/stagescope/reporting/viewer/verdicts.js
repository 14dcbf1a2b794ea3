/** The four verdicts, a symbol and a word for each, so that colour is never alone; and the numbers beside them. */

import { brief, el, short } from "./dom.js";

/** @typedef {{name: string, symbol: string, style: string}} VerdictKind */

/** @type {VerdictKind[]} */
export const KINDS = [
  { name: "confirmed", symbol: "\u2713", style: "is-confirmed" },
  { name: "violated", symbol: "\u2717", style: "is-violated" },
  { name: "inconclusive", symbol: "?", style: "is-inconclusive" },
  { name: "not applicable", symbol: "\u2013", style: "is-not-applicable" },
];

/** @param {string} verdict @returns {VerdictKind} */
export function verdictKind(verdict) {
  return KINDS.find((kind) => kind.name === verdict) ?? { name: verdict, symbol: "?", style: "is-inconclusive" };
}

/** @param {string} verdict */
export function badge(verdict) {
  const { name, symbol, style } = verdictKind(verdict);
  return el("span", { class: `badge ${style}` }, [el("span", { class: "symbol", "aria-hidden": "true", text: symbol }), name]);
}

/** Numbers that JSON cannot carry come as words. @type {Object<string, string>} */
const WORDS = { inf: "\u221e", "-inf": "\u2212\u221e", nan: "NaN" };

/** @param {number|string|null} cell predicted, measured or tolerance @param {number} [limit] of characters */
export function cellText(cell, limit = 60) {
  return typeof cell === "string" ? (WORDS[cell] ?? brief(cell, limit)) : short(cell);
}
