/** The colours of cells: a ramp for numbers, a hue for each name, pale where runs have no value. */

import { category, colourMap, css, STEPS, themeNow } from "./colours.js";
import { short } from "./dom.js";
import { ValueScale } from "./value_scale.js";

/** @typedef {import("./sweep.js").Column} Column */
/** @typedef {import("./sweep.js").SweepCell} SweepCell */
/** @typedef {{text: string, fill: string}} Swatch */

const MOST_NAMES = 7; // that have a colour of their own; others share a grey
const FOOT = 0.1; // of the ramp is left out: its pale end is the colour of the page, and of cells that do not exist
const DIGIT = 6.4; // px of a digit beside the bar of colours
const OTHERS = { light: "#9b9b9b", dark: "#8a8d94" };
/** What was there at the start: on no ramp. */
const STARTS = { light: "#e6a3b3", dark: "#a85b70" };
/** Where runs reached their end and there is no value, by why. @type {{light: Object<string, string>, dark: Object<string, string>}} */
const ABSENT = {
  light: { "not reached": "#e3e3e1", "in progress": "#c8d3dc", none: "#efe4d0" },
  dark: { "not reached": "#3b3e45", "in progress": "#37475a", none: "#4a4335" },
};
/** Verdicts keep their colours wherever they are shown. @type {Object<string, number|undefined>} */
const VERDICT_HUES = { confirmed: 2, violated: 1, inconclusive: 4 };
const NO_VERDICT = "not applicable";

export class CellColours {
  /** @param {Column} column @param {SweepCell[]} cells that are shown */
  constructor(column, cells) {
    this.column = column;
    this.numeric = column.kind !== "word";
    const values = cells.flatMap(({ value, start }) => (value === null || start ? [] : [value]));
    this.scale = new ValueScale(this.numeric ? values : []);
    /** Names in the order of their colours. */
    this.names = column.names ?? [];
    /** Numbers of those that are shown. */
    this.seen = this.numeric ? [] : [...new Set(values)].sort((a, b) => a - b);
  }

  /** Whether there is a bar of colours. */
  get barred() {
    return this.scale.any && !this.scale.constant;
  }

  /** @param {string} lack */
  absent(lack) {
    return ABSENT[themeNow()][lack];
  }

  get atStart() {
    return STARTS[themeNow()];
  }

  /** The colour of a cell that did not fail. @param {SweepCell} cell @returns {string} */
  fill({ value, lack, start }) {
    if (value === null) return this.absent(lack ?? "none");
    if (start) return this.atStart;
    return this.numeric ? this.ramp(this.scale.constant ? 0.4 : this.scale.place(value)) : this.hue(value);
  }

  /** @param {number} share 0..1 along the ramp */
  ramp(share) {
    const foot = this.scale.signed ? 0 : FOOT;
    return css(colourMap(this.scale.signed)[Math.round((foot + (1 - foot) * share) * (STEPS - 1))]);
  }

  /** @param {number} item number of a name */
  hue(item) {
    const name = this.names[item];
    if (this.names.every(isVerdict)) return name === NO_VERDICT ? OTHERS[themeNow()] : category(VERDICT_HUES[name] ?? 7);
    return item < MOST_NAMES ? category(item) : OTHERS[themeNow()];
  }

  /** @returns {Swatch[]} what the colours of names mean, of those that are shown */
  swatches() {
    const { any, constant, low } = this.scale;
    if (this.numeric) return any && constant ? [{ text: `${short(low, 5)} everywhere`, fill: this.ramp(0.4) }] : [];
    const own = this.seen.filter((item) => item < MOST_NAMES);
    const rest = this.seen.length - own.length;
    const found = own.map((item) => ({ text: this.names[item], fill: this.hue(item) }));
    return rest ? [...found, { text: rest === 1 ? "1 other" : `${rest} others`, fill: OTHERS[themeNow()] }] : found;
  }

  /** Numbers under the bar of colours. @param {number} width px @returns {[share: number, text: string][]} */
  ticks(width) {
    let free = -Infinity; // px from which on there is room for the next number
    /** @type {[number, string][]} */
    const shown = this.scale.marks(width, 52).map((value) => [this.scale.place(value), short(value, 4)]);
    return shown.filter(([share, text]) => {
      const half = (DIGIT * text.length) / 2;
      const fits = share * width - half > free;
      if (fits) free = share * width + half + DIGIT;
      return fits;
    });
  }
}

/** @param {string} name */
function isVerdict(name) {
  return name === NO_VERDICT || Object.hasOwn(VERDICT_HUES, name);
}
