/**
 * The numbers of a matrices view: their colours, and what is known of each.
 *
 * 8-bit blocks go through a table of 256 colours, one look-up a cell. Exact blocks are put on the same scale, so that a page
 * with full precision looks like one without.
 */

import { levels, NOT_A_NUMBER, precision } from "./blocks.js";
import { colourMap, pixelOf, scalePlace, STEPS } from "./colours.js";
import { short } from "./dom.js";

/** @typedef {import("./types.js").MatricesView} MatricesView */
/** @typedef {import("./blocks.js").Numbers} Numbers */
/** @typedef {{value: number, precision: number, text: string}} Reading */

/** A pixel that shows what lies under the map: the hatching of cells without a number. */
const CLEAR = 0;

/**
 * A value with as many digits as its precision allows: "0.412 ± 0.003". The precision has one digit, two where the first is
 * a 1, and is rounded up: what is shown holds.
 * @param {number} value
 * @param {number} within
 */
function withPrecision(value, within) {
  if (!(within > 0)) return short(value);
  const leading = Math.ceil(-Math.log10(within));
  const digits = within * 10 ** leading < 2 ? leading + 1 : leading;
  const places = Math.max(0, digits);
  const bound = Math.ceil((within + 0.5 * 10 ** -places) * 10 ** digits - 1e-9) / 10 ** digits; // the value is rounded, too
  if (digits > 7) return `${short(Math.round(value * 10 ** digits) / 10 ** digits)} \u00b1 ${short(bound)}`;
  return `${value.toFixed(places).replace("-", "\u2212")} \u00b1 ${bound.toFixed(places)}`;
}

/** One view of matrices, decoded. */
export class Matrices {
  /**
   * @param {MatricesView} view
   * @param {Numbers} numbers (frames, panels, rows, columns)
   * @param {Numbers|null} kinds (rows, columns): 0, or 1 + a place in the names of marks
   */
  constructor(view, numbers, kinds) {
    this.view = view;
    this.numbers = numbers;
    this.kinds = kinds;
    this.rows = view.rows.length;
    this.columns = view.columns.length;
    this.cells = this.rows * this.columns;
    this.coded = view.values.encoding === "companded";
    this.diverging = view.low === -view.high && view.high > 0;
    this.levels = this.coded ? levels(view.values) : new Float64Array();
    /** @type {Uint32Array} a pixel for each code, or for each step of the scale */
    this.pixels = new Uint32Array(256);
    this.recolour();
  }

  /** Takes the colours of the theme. */
  recolour() {
    const colours = colourMap(this.diverging);
    for (let i = 0; i < NOT_A_NUMBER; i++) {
      const step = this.coded ? this.step(this.levels[i]) : i;
      this.pixels[i] = pixelOf(colours[step]);
    }
    this.pixels[NOT_A_NUMBER] = CLEAR;
  }

  /** @param {number} value -> its step on the colour scale */
  step(value) {
    return Math.round((STEPS - 1) * scalePlace(value, this.view.low, this.view.high));
  }

  /** @param {number} place of the frame @param {number} panel -> where its numbers begin */
  start(place, panel) {
    return (place * this.view.panels.length + panel) * this.cells;
  }

  /**
   * Writes the pixels of one matrix; true if a cell has no finite number.
   * @param {number} place
   * @param {number} panel
   * @param {Uint32Array} out
   */
  paint(place, panel, out) {
    const { numbers, pixels, coded } = this;
    let missing = false;
    for (let i = 0, from = this.start(place, panel); i < out.length; i++, from++) {
      const number = numbers[from];
      const code = coded ? number : Number.isFinite(number) ? this.step(number) : NOT_A_NUMBER;
      out[i] = pixels[code];
      if (code === NOT_A_NUMBER) missing = true;
    }
    return missing;
  }

  /**
   * @param {number} place
   * @param {number} panel
   * @param {number} row
   * @param {number} column
   * @returns {Reading}
   */
  reading(place, panel, row, column) {
    const number = this.numbers[this.start(place, panel) + row * this.columns + column];
    if (!this.coded) {
      return { value: number, precision: 0, text: `${short(number, 7)}, float32` };
    }
    const value = this.levels[number];
    if (number === NOT_A_NUMBER) return { value, precision: NaN, text: "not a finite number" };
    const within = precision(this.view.values, number);
    return { value, precision: within, text: `${withPrecision(value, within)}, 8-bit display` };
  }

  /** @param {number} row @param {number} column -> the kind of a marked cell, or -1 */
  kind(row, column) {
    return this.kinds ? this.kinds[row * this.columns + column] - 1 : -1;
  }

  /** The kind of each column if no row differs from another, else null. */
  columnKinds() {
    if (!this.kinds || this.rows < 1) return null;
    for (let i = this.columns; i < this.kinds.length; i++) if (this.kinds[i] !== this.kinds[i - this.columns]) return null;
    return Array.from({ length: this.columns }, (_, column) => this.kind(0, column));
  }
}
