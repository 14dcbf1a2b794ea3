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

/** @param {string} verdict */
export function badge(verdict) {
  const { name, symbol, style } = KINDS.find((kind) => kind.name === verdict) ?? { ...KINDS[2], name: verdict };
  return el("span", { class: `badge ${style}` }, [el("span", { class: "symbol", "aria-hidden": "true", text: symbol }), name]);
}

/** Numbers that JSON cannot carry come as words. @type {Object<string, string>} */
const WORDS = { inf: "\u221e", "-inf": "\u2212\u221e", nan: "NaN" };

/** @param {number|string|null} cell predicted, measured or tolerance @param {number|null} [error] half its 95 % interval */
export function cellText(cell, error = null) {
  const text = typeof cell === "string" ? (WORDS[cell] ?? brief(cell, 60)) : short(cell);
  return cell === null || !error ? text : `${text} \u00b1\u00a0${Number(error.toPrecision(2))}`;
}

/** What a reader must know of a claim besides its verdict. @param {import("./types.js").Verdict} verdict */
export function kindText({ kind, group, rates }) {
  const nulls = rates && `confirmed on ${rates.null_confirmed} of ${rates.nulls} nulls`;
  return [kind, group && `group: ${brief(group, 60)}`, nulls].filter(Boolean).join(", ");
}
