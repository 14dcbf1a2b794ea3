/** The frame of a diagram: where places of its axes lie in pixels, and the ticks along them. */

import { inks } from "./colours.js";
import { brief, short } from "./dom.js";
import { textShape, turnedShape } from "./shapes.js";
import { Axis, axisTicks } from "./traces.js";

/** @typedef {import("./shapes.js").Shape} Shape */
/** @typedef {import("./sweep.js").Ruler} Ruler */
/** @typedef {{place: number, text: string}} Mark a label may have several lines */

const LABEL_LETTER = 6.2; // px
const TICK = 5;
const TITLE = 22; // px of the name of an axis
const LONGEST_LABEL = 22;
export const ROW_LINE = 14; // px between the lines of a label beside the frame

/** @param {Ruler} ruler @param {number} length px @param {number} gap px between two marks @returns {Mark[]} */
export function marksAlong(ruler, length, gap) {
  if (ruler.named || ruler.ordinal) {
    const skip = Math.max(1, Math.ceil((ruler.values.length * gap) / length));
    const text = (/** @type {number} */ value) => (ruler.named ? brief(ruler.names[value], LONGEST_LABEL) : short(value, 4));
    return ruler.values.map((value, i) => ({ place: i, text: text(value) })).filter(({ place }) => place % skip === 0);
  }
  const [first, last] = ruler.reach;
  const places = ruler.values.map((value) => ((ruler.place(value) - first) / (last - first)) * length);
  const fits = places.every((place, i) => !i || place - places[i - 1] >= gap * 0.75); // else they would touch
  const [from, to] = ruler.reach.map((place) => (ruler.log ? 10 ** place : place));
  const values = fits ? ruler.values : axisTicks(new Axis(from, to, ruler.log), length, gap);
  return values.map((value) => ({ place: ruler.place(value), text: short(value, 4) }));
}

/** @param {Ruler} ruler what is written along an axis */
export function axisName(ruler) {
  return ruler.name + (ruler.ordinal ? " (values at equal distances)" : "");
}

export class DiagramFrame {
  /**
   * @param {number} width of everything
   * @param {number} height of the inside
   * @param {[number, number]} across places at the left and right end
   * @param {[number, number]} upwards places at the lower and upper end
   * @param {Mark[]} rows marks along the left side: they need room
   */
  constructor(width, height, across, upwards, rows) {
    this.left = TITLE + TICK + 4 + Math.max(18, ...rows.flatMap(({ text }) => text.split("\n").map((line) => line.length * LABEL_LETTER)));
    this.top = 8;
    this.right = width - 14;
    this.bottom = this.top + height;
    this.across = across;
    this.upwards = upwards;
    this.rows = rows;
  }

  /** @param {number} place */
  x(place) {
    const [from, to] = this.across;
    return this.left + ((place - from) / (to - from)) * (this.right - this.left);
  }

  /** @param {number} place */
  y(place) {
    const [from, to] = this.upwards;
    return this.bottom - ((place - from) / (to - from)) * (this.bottom - this.top);
  }

  /**
   * The outline, the marks and the names of both axes; everything below it begins at `foot`.
   * @param {Mark[]} columns
   * @param {string} xName
   * @param {string} yName
   * @returns {Shape[]}
   */
  shapes(columns, xName, yName) {
    const { muted, ink } = inks();
    const small = { fill: muted, "font-size": 11.5 };
    const { left, right, top, bottom } = this;
    /** @type {Shape[]} */
    const found = [["rect", { x: left, y: top, width: right - left, height: bottom - top, fill: "none", stroke: muted }]];
    for (const { place, text } of columns) {
      const x = this.x(place);
      found.push(["line", { x1: x, x2: x, y1: bottom, y2: bottom + TICK, stroke: muted }]);
      found.push(textShape(x, bottom + TICK + 13, text, { ...small, "text-anchor": "middle" }));
    }
    for (const { place, text } of this.rows) {
      const y = this.y(place);
      found.push(["line", { x1: left - TICK, x2: left, y1: y, y2: y, stroke: muted }]);
      const lines = text.split("\n");
      lines.forEach((line, i) =>
        found.push(textShape(left - TICK - 4, y + 4 + (i - (lines.length - 1) / 2) * ROW_LINE, line, { ...small, "text-anchor": "end" })),
      );
    }
    const title = { fill: ink, "font-size": 12.5, "text-anchor": "middle" };
    found.push(textShape((left + right) / 2, bottom + TICK + 32, brief(xName, 90), title));
    found.push(turnedShape(12, (top + bottom) / 2, brief(yName, 60), title));
    return found;
  }

  get foot() {
    return this.bottom + TICK + 48;
  }
}
