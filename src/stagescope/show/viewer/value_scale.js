/**
 * Where numbers lie on a bar of colours or along an axis of values: linear, logarithmic, and both with a sign.
 * `show/diagram_areas.py` does the same for figures.
 */

import { Axis, axisTicks } from "./traces.js";

const DECADES = 10; // ratio of the largest to the smallest value from which a scale is logarithmic
const SIGNED_DECADES = 100; // the same for the sizes of values of both signs
const DEEPEST = 1e-12; // sizes below so much of the largest all lie at the foot of a signed logarithmic scale
const OFF = 0.3; // of either half of that scale, the part next to zero that is left out

export class ValueScale {
  /** @param {number[]} values that are shown */
  constructor(values) {
    let [low, high, least, size] = [Infinity, -Infinity, Infinity, 0];
    for (const value of values) {
      low = Math.min(low, value);
      high = Math.max(high, value);
      if (value) least = Math.min(least, Math.abs(value));
      size = Math.max(size, Math.abs(value));
    }
    this.any = values.length > 0;
    this.constant = low === high;
    this.signed = low < 0 && high > 0;
    this.size = size;
    this.least = Math.max(least, DEEPEST * size);
    this.low = this.signed ? -size : low;
    this.high = this.signed ? size : high;
    this.log = this.signed ? size > SIGNED_DECADES * this.least : low > 0 && high > DECADES * low;
  }

  /** @param {number} value -> 0 at the lowest, 1 at the highest */
  place(value) {
    const { low, high, least, size } = this;
    if (this.signed && this.log) {
      const far = Math.log(Math.max(Math.abs(value) / least, 1)) / Math.log(size / least);
      return 0.5 + 0.5 * Math.sign(value) * (OFF + (1 - OFF) * far);
    }
    if (this.log) return Math.log(value / low) / Math.log(high / low);
    return this.constant ? 0.5 : (value - low) / (high - low);
  }

  /** Round values to write beside the scale, ascending. @param {number} length px @param {number} gap px @returns {number[]} */
  marks(length, gap) {
    if (!this.any || this.constant) return [];
    if (!(this.signed && this.log)) return axisTicks(new Axis(this.low, this.high, this.log), length, gap);
    const room = ((1 - OFF) * length) / 2;
    const sizes = axisTicks(new Axis(this.least, this.size, true), room, gap);
    return [...sizes.map((mark) => -mark).reverse(), 0, ...sizes];
  }
}
