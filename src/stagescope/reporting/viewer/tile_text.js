/** The words and numbers of a matrix: how much of a label fits, how many labels there are, how a cell says its value. */

import { brief, el, short } from "./dom.js";

export const LONGEST_LABEL = 40; // characters of a label that are looked at
const LINE = 11; // px between labels that are all drawn

const pen = /** @type {CanvasRenderingContext2D} */ (el("canvas").getContext("2d"));

/** @param {string} text @param {number} font px @returns {number} px */
export function labelWidth(text, font) {
  pen.font = `${font}px system-ui`;
  return pen.measureText(brief(text, LONGEST_LABEL)).width;
}

/** @param {string} text @param {number} widest @param {number} font px -> as much of it as fits */
export function fitted(text, widest, font) {
  pen.font = `${font}px system-ui`;
  for (let length = LONGEST_LABEL; length > 1; length--) {
    const shown = brief(text, length);
    if (pen.measureText(shown).width <= widest) return shown;
  }
  return "\u2026";
}

/** @param {number} side of a cell -> every how many cells have a label */
export function stride(side) {
  const least = LINE / side;
  return [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000].find((step) => step >= least) ?? Math.ceil(least);
}

/** A number as a cell has room for it: 0.42, 1.2, 35. @param {number} value */
export function cellNumber(value) {
  const size = Math.abs(value);
  if (size < 0.005) return "0.00"; // without a sign
  return size < 1.0005 ? value.toFixed(2).replace("-", "\u2212") : short(value, 3);
}
