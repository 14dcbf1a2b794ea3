/** The moments of a ladder's rungs along the axis of time: what is drawn in the table, and the drawing for a file. */

import { category, inks } from "./colours.js";
import { brief, clockText, short } from "./dom.js";
import { svgFile, textShape } from "./shapes.js";
import { axisTicks } from "./traces.js";

/** @typedef {import("./types.js").Rung} Rung */
/** @typedef {import("./shapes.js").Shape} Shape */
/** @typedef {import("./traces.js").Axis} Axis */
/** @typedef {{name: string, share: number, value: number, beyond: boolean}} RungDot */

const DOT = 3.8; // px
const RING = 6.5;
const LABELS = 300; // px beside the chart
const ROW = 30; // px
const ACROSS = 900; // px

export const DOT_NAMES = { slowest: "where the run moves slowest", predicted: "predicted escape", measured: "measured escape" };

/** @param {Rung} rung -> measured over predicted rate */
export function ratioOf({ measured_rate, rates }) {
  return measured_rate === null || !rates.length || !rates[0] ? null : measured_rate / rates[0];
}

/**
 * Moments of a rung along the axis; one that lies beyond its ends stands at the end.
 * @param {Rung} rung
 * @param {Axis} axis
 * @returns {RungDot[]}
 */
export function dotsOf(rung, axis) {
  /** @type {[string, number|null][]} */
  const moments = [
    ["slowest", rung.t],
    ["predicted", rung.predicted_escape],
    ["measured", rung.measured_escape],
  ];
  return moments.flatMap(([name, value]) => {
    if (value === null || Number.isNaN(value)) return [];
    const share = value <= axis.min ? 0 : value >= axis.max ? 1 : axis.at(value);
    return [{ name, value, share, beyond: value > axis.max }];
  });
}

/** The look of a moment: attributes of its circle. A prediction that holds is a ring around the dot. @param {string} name @returns {Object<string, string|number>} */
export function rungLook(name) {
  if (name === "slowest") return { r: 3, fill: inks().muted, stroke: inks().muted };
  return name === "predicted"
    ? { r: RING, fill: "none", stroke: category(1), "stroke-width": 1.8 }
    : { r: DOT, fill: category(1), stroke: "none" };
}

/** @param {string} clock @param {RungDot} dot */
export function dotText(clock, { name, value, beyond }) {
  const what = name === "slowest" ? "moves slowest" : `${name} escape`;
  return `${what}: ${clockText(clock, value)}${beyond ? " (after the last frame)" : ""}`;
}

/**
 * The ladders of runs, one below the other.
 * @param {{name: string, rungs: Rung[]}[]} ladders
 * @param {Axis} axis
 */
export function ladderSvg(ladders, axis) {
  let top = 24;
  /** @type {Shape[]} */
  const shapes = [];
  for (const { name, rungs } of ladders) {
    shapes.push(...runShapes(ladders.length > 1 ? name : "", rungs, axis, top));
    top += 24 + rungs.length * ROW + 12;
  }
  return svgFile({ width: ACROSS, height: top + 12, shapes: [...shapes, ...dotShapes(top)] });
}

/**
 * Labels, then the moments.
 * @param {string} name
 * @param {Rung[]} rungs
 * @param {Axis} axis
 * @param {number} top
 * @returns {Shape[]}
 */
function runShapes(name, rungs, axis, top) {
  const small = { fill: inks().muted, "font-size": 10 };
  const x = (/** @type {number} */ share) => LABELS + share * (ACROSS - LABELS - 24);
  const shapes = [textShape(12, top, brief(name, 40), { "font-weight": 600 })];
  for (const value of axisTicks(axis, ACROSS - LABELS, 90)) {
    shapes.push(textShape(x(axis.at(value)), top, short(value, 3), { ...small, "text-anchor": "middle" }));
  }
  rungs.forEach((rung, i) => {
    const y = top + 24 + i * ROW;
    const opens = `${brief(rung.opening ?? "", 20)} at ${short(rung.rates[0])}, measured ${short(rung.measured_rate)}`;
    shapes.push(textShape(12, y + 4, brief(rung.label, 18), { "font-weight": 600 }));
    shapes.push(textShape(110, y + 4, rung.rates.length ? opens : "nothing opens", small));
    shapes.push(["line", { x1: x(0), x2: x(1), y1: y, y2: y, stroke: inks().line }]);
    for (const dot of dotsOf(rung, axis)) shapes.push(["circle", { cx: x(dot.share), cy: y, ...rungLook(dot.name) }]);
  });
  return shapes;
}

/** What the circles mean, for a file. @param {number} y @returns {Shape[]} */
function dotShapes(y) {
  return Object.entries(DOT_NAMES).flatMap(
    ([name, text], i) =>
      /** @type {Shape[]} */ ([
        ["circle", { cx: LABELS + 6 + i * 170, cy: y - 4, ...rungLook(name) }],
        textShape(LABELS + 18 + i * 170, y, text, { fill: inks().muted, "font-size": 10 }),
      ]),
  );
}
