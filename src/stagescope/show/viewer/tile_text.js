/** The words and numbers of a matrix: how much of a label fits, how many labels there are, how a cell says its value. */

import { brief, clean, el, short } from "./dom.js";

export const LONGEST_LABEL = 40; // characters of a label that are looked at
const LINE = 11; // px between labels that are all drawn

const pen = /** @type {CanvasRenderingContext2D} */ (el("canvas").getContext("2d"));

/** @param {string} text @param {number} font px @returns {number} px */
export function labelWidth(text, font) {
  pen.font = `${font}px system-ui`;
  return pen.measureText(brief(text, LONGEST_LABEL)).width;
}

/** @param {string} text @param {number} widest @param {(text: string, length: number) => string} cut -> as much of it as fits */
function shortened(text, widest, cut) {
  for (let length = LONGEST_LABEL; length > 1; length--) {
    const shown = cut(text, length);
    if (pen.measureText(shown).width <= widest) return shown;
  }
  return "\u2026";
}

/** The text without its middle: "layer\u2026head 1". @param {string} text @param {number} length */
function middleCut(text, length) {
  const [whole, end] = [clean(text), Math.floor((length - 1) / 2)];
  return whole.length > length ? clean(`${whole.slice(0, length - 1 - end)}\u2026${whole.slice(whole.length - end)}`) : whole;
}

/** As much of each name as fits; names that would look the same lose their middle instead of their end. @param {string[]} names @param {number} widest @param {number} font px */
export function fitted(names, widest, font) {
  pen.font = `${font}px system-ui`;
  const cut = names.map((name) => shortened(name, widest, brief));
  const twice = cut.some((one, i) => one !== names[i] && cut.indexOf(one) !== cut.lastIndexOf(one));
  return twice ? names.map((name) => shortened(name, widest, middleCut)) : cut;
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
