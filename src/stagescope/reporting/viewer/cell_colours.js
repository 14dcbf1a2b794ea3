/** The colours of cells: a ramp for numbers, a hue for each name, grey where a run has no value. */

import { category, colourMap, css, STEPS, themeNow } from "./colours.js";
import { short } from "./dom.js";
import { Axis, axisTicks } from "./traces.js";

/** @typedef {import("./sweep.js").SweepTable} SweepTable */
/** @typedef {import("./sweep.js").Column} Column */
/** @typedef {import("./sweep.js").SweepCell} SweepCell */
/** @typedef {{text: string, fill: string}} Swatch */

export const MOST_NAMES = 7; // that have a colour of their own; others share a grey
const DECADES = 10; // ratio of the largest to the smallest number from which colours are logarithmic
const FOOT = 0.1; // of the ramp is left out: its pale end is the colour of the page, and of cells that do not exist
const GREYS = { light: { absent: "#e3e3e1", other: "#9b9b9b" }, dark: { absent: "#3b3e45", other: "#8a8d94" } };
/** Verdicts keep their colours wherever they are shown. @type {Object<string, number|undefined>} */
const VERDICT_HUES = { confirmed: 2, violated: 1, inconclusive: 4 };
const NO_VERDICT = "not applicable";

export class CellColours {
  /**
   * @param {SweepTable} table
   * @param {Column} column
   * @param {SweepCell[]} cells that are shown
   */
  constructor(table, column, cells) {
    this.column = column;
    this.numeric = column.kind === "number";
    const values = cells.map(({ value }) => value).filter((value) => value !== null);
    this.low = values.reduce((least, value) => Math.min(least, value), Infinity);
    this.high = values.reduce((most, value) => Math.max(most, value), -Infinity);
    this.any = values.length > 0;
    this.constant = this.low === this.high;
    this.diverging = this.low < 0 && this.high > 0;
    if (this.diverging) this.high = Math.max(-this.low, this.high);
    if (this.diverging) this.low = -this.high;
    this.log = this.low > 0 && this.high > DECADES * this.low;
    this.axis = this.numeric && this.any && !this.constant ? new Axis(this.low, this.high, this.log) : null;
    /** Names in the order of their colours. */
    this.ranked = this.numeric ? [] : table.ranked(column);
    this.seen = new Set(values);
  }

  get greys() {
    return GREYS[themeNow()];
  }

  /** @param {number|null} value @returns {string} */
  fill(value) {
    if (value === null) return this.greys.absent;
    return this.numeric ? this.ramp(this.axis ? this.axis.at(value) : 0.4) : this.hue(value);
  }

  /** @param {number} share 0..1 along the ramp */
  ramp(share) {
    const foot = this.diverging ? 0 : FOOT;
    return css(colourMap(this.diverging)[Math.round((foot + (1 - foot) * share) * (STEPS - 1))]);
  }

  /** @param {number} item number of a name */
  hue(item) {
    const name = (this.column.names ?? [])[item];
    const verdicts = this.ranked.every((each) => isVerdict((this.column.names ?? [])[each]));
    if (verdicts) return name === NO_VERDICT ? this.greys.other : category(VERDICT_HUES[name] ?? 7);
    const rank = this.ranked.indexOf(item);
    return rank < MOST_NAMES ? category(rank) : this.greys.other;
  }

  /** @returns {Swatch[]} what the colours of names mean, of those that are shown */
  swatches() {
    if (this.numeric) return this.constant ? [{ text: `${short(this.low, 5)} everywhere`, fill: this.fill(this.low) }] : [];
    const shown = this.ranked.filter((item) => this.seen.has(item));
    const own = shown.filter((item) => this.ranked.indexOf(item) < MOST_NAMES);
    const rest = shown.length - own.length;
    const found = own.map((item) => ({ text: (this.column.names ?? [])[item], fill: this.hue(item) }));
    return rest ? [...found, { text: rest === 1 ? "1 other" : `${rest} others`, fill: this.greys.other }] : found;
  }

  /** Numbers under the bar of colours. @param {number} width px @returns {[share: number, text: string][]} */
  ticks(width) {
    const { axis } = this;
    return axis ? axisTicks(axis, width, 56).map((value) => [axis.at(value), short(value, 4)]) : [];
  }
}

/** @param {string} name */
function isVerdict(name) {
  return name === NO_VERDICT || Object.hasOwn(VERDICT_HUES, name);
}
