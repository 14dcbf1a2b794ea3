/** What the colours, the hatching and the dots of a diagram mean, as shapes under the drawing. */

import { inks } from "./colours.js";
import { brief } from "./dom.js";
import { textShape } from "./shapes.js";

/** @typedef {import("./shapes.js").Shape} Shape */
/** @typedef {import("./cell_colours.js").CellColours} CellColours */
/** @typedef {import("./sweep.js").SweepCell} SweepCell */

const BAR_WIDTH = 260;
const BAR_PARTS = 80;
const LINE = 19;
const LETTER = 6.1;
const GAP = 26; // px between entries
const BOX = 12;

/**
 * @param {CellColours} colours
 * @param {SweepCell[]} cells
 * @param {number} left
 * @param {number} top
 * @param {number} right
 * @returns {{shapes: Shape[], bottom: number}}
 */
export function diagramLegend(colours, cells, left, top, right) {
  /** @type {Shape[]} */
  const shapes = [];
  let y = top;
  if (colours.axis) {
    shapes.push(...bar(colours, left, y, Math.min(BAR_WIDTH, right - left)));
    y += 34;
  }
  const entries = [
    ...colours.swatches().map(({ text, fill }) => ({ text: brief(text, 96), mark: swatchAt(fill) })),
    ...marksOf(colours, cells),
  ];
  let x = left;
  for (const { text, mark } of entries) {
    const wide = BOX + 7 + text.length * LETTER;
    if (x > left && x + wide > right) [x, y] = [left, y + LINE];
    shapes.push(...mark(x, y), textShape(x + BOX + 7, y + 10, text, { fill: inks().muted, "font-size": 12 }));
    x += wide + GAP;
  }
  return { shapes, bottom: entries.length ? y + LINE : y };
}

/** @param {string} fill */
function swatchAt(fill) {
  return (/** @type {number} */ x, /** @type {number} */ y) =>
    /** @type {Shape[]} */ ([["rect", { x, y, width: BOX, height: BOX, fill, rx: 1.5 }]]);
}

/** @param {CellColours} colours @param {SweepCell[]} cells */
function marksOf(colours, cells) {
  const ink = inks();
  const found = [];
  if (cells.some(({ value, failed }) => value === null && !failed)) {
    found.push({ text: colours.column.absent, mark: swatchAt(colours.greys.absent) });
  }
  if (cells.some(({ value, failed }) => value === null && failed)) {
    const mark = (/** @type {number} */ x, /** @type {number} */ y) =>
      /** @type {Shape[]} */ ([
        ["path", { d: hatching(x, y, x + BOX, y + BOX), stroke: ink.muted, "stroke-width": 1, fill: "none" }],
        ["rect", { x: x + 0.5, y: y + 0.5, width: BOX - 1, height: BOX - 1, fill: "none", stroke: ink.muted }],
      ]);
    found.push({ text: "failed", mark });
  }
  if (cells.some(({ torn }) => torn)) {
    const mark = (/** @type {number} */ x, /** @type {number} */ y) => [dotShape(x + BOX / 2, y + BOX / 2)];
    found.push({ text: "seeds disagree", mark });
  }
  return found;
}

/** @param {CellColours} colours @param {number} left @param {number} top @param {number} width @returns {Shape[]} */
function bar(colours, left, top, width) {
  const step = width / BAR_PARTS;
  const small = { fill: inks().muted, "font-size": 11, "text-anchor": "middle" };
  /** @type {Shape[]} */
  const parts = Array.from({ length: BAR_PARTS }, (_, i) => [
    "rect",
    { x: left + i * step, y: top, width: step + 0.6, height: 10, fill: colours.ramp((i + 0.5) / BAR_PARTS) },
  ]);
  const ticks = colours.ticks(width).flatMap(
    ([share, text]) =>
      /** @type {Shape[]} */ ([
        ["line", { x1: left + share * width, x2: left + share * width, y1: top + 10, y2: top + 13, stroke: inks().muted }],
        textShape(left + share * width, top + 24, text, small),
      ]),
  );
  return [["g", { "shape-rendering": "crispEdges" }, parts], ...ticks];
}

/** A dot that is seen on any colour. @param {number} x @param {number} y @returns {Shape} */
export function dotShape(x, y) {
  return ["circle", { cx: x, cy: y, r: 2.4, fill: inks().ink, stroke: inks().paper, "stroke-width": 1 }];
}

/**
 * Diagonal strokes inside a rectangle that meet those of its neighbours.
 * @param {number} left
 * @param {number} top
 * @param {number} right
 * @param {number} bottom
 */
export function hatching(left, top, right, bottom, gap = 6) {
  let d = "";
  for (let sum = Math.ceil((left + top) / gap) * gap; sum < right + bottom; sum += gap) {
    const from = Math.max(left, sum - bottom); // on the line x + y = sum
    const to = Math.min(right, sum - top);
    if (to > from) d += `M${from.toFixed(1)} ${(sum - from).toFixed(1)}L${to.toFixed(1)} ${(sum - to).toFixed(1)}`;
  }
  return d;
}
