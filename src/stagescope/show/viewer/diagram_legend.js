/** What the colours, the hatching and the dots of a diagram mean, as shapes under the drawing. */

import { inks } from "./colours.js";
import { AT_START } from "./diagram_words.js";
import { measured, textShape, toldApart, wrapped } from "./shapes.js";

/** @typedef {import("./shapes.js").Shape} Shape */
/** @typedef {import("./cell_colours.js").CellColours} CellColours */
/** @typedef {import("./sweep.js").SweepCell} SweepCell */
/** @typedef {{text: string, mark: ((x: number, y: number) => Shape[])|null}} Entry */

const BAR_WIDTH = 260;
const SIGNED_BAR_WIDTH = 380; // its numbers stand on both sides of zero
const BAR_PARTS = 80;
const LINE = 19;
const GAP = 26; // px between entries
const BOX = 12;
const SIZE = 12; // of the type, px
const MOST_LINES = 4; // of an entry

/**
 * @param {CellColours} colours
 * @param {SweepCell[]} cells
 * @param {Map<string, string>} lacks what is said of cells without a value
 * @param {string} title of the bar of colours
 * @param {number} left
 * @param {number} top
 * @param {number} right
 * @returns {{shapes: Shape[], bottom: number}}
 */
export function diagramLegend(colours, cells, lacks, title, left, top, right) {
  /** @type {Shape[]} */
  const shapes = [];
  let y = top;
  if (colours.barred) {
    const width = Math.min(colours.scale.signed ? SIGNED_BAR_WIDTH : BAR_WIDTH, right - left);
    shapes.push(...bar(colours, left, y, width));
    const beside = measured(title, SIZE) + 14 < right - left - width;
    shapes.push(...(beside ? entryText(left + width + 14, y + 9, right, title) : entryText(left, y + 44, right, title)).shapes);
    y += beside ? 34 : 34 + LINE;
  }
  const swatches = colours.swatches();
  const named = toldApart(swatches.map(({ text }) => text), right - left - BOX - 7, SIZE, MOST_LINES); // prettier-ignore
  const entries = [
    ...swatches.map(({ fill }, i) => ({ text: named[i].join(" "), mark: swatchAt(fill) })),
    ...marksOf(colours, cells, lacks),
  ];
  const rows = legendRows(entries, left, y, right);
  return { shapes: [...shapes, ...rows.shapes], bottom: rows.bottom };
}

/**
 * Entries beside each other, in as many rows as they need.
 * @param {Entry[]} entries
 * @param {number} left
 * @param {number} top
 * @param {number} right
 * @returns {{shapes: Shape[], bottom: number}}
 */
export function legendRows(entries, left, top, right) {
  /** @type {Shape[]} */
  const shapes = [];
  let [x, y, deep] = [left, top, 0]; // lines of the entries in this row
  for (const { text, mark } of entries) {
    const inner = mark ? BOX + 7 : 0;
    let said = entryText(x + inner, y + 10, right, text);
    if (x > left && said.lines > 1) {
      [x, y, deep] = [left, y + LINE * deep, 0];
      said = entryText(x + inner, y + 10, right, text);
    }
    shapes.push(...(mark ? mark(x, y) : []), ...said.shapes);
    x += inner + said.width + GAP;
    deep = Math.max(deep, said.lines);
  }
  return { shapes, bottom: y + LINE * deep };
}

/** A text in lines, with its measures. @param {number} x @param {number} y @param {number} right @param {string} text */
function entryText(x, y, right, text) {
  const lines = wrapped(text, Math.max(40, right - x), SIZE, MOST_LINES);
  const width = Math.max(0, ...lines.map((line) => measured(line, SIZE)));
  const shapes = lines.map((line, i) => textShape(x, y + i * (LINE - 4), line, { fill: inks().muted, "font-size": SIZE }));
  return { shapes, width, lines: lines.length };
}

/** @param {string} fill */
function swatchAt(fill) {
  return (/** @type {number} */ x, /** @type {number} */ y) =>
    /** @type {Shape[]} */ ([["rect", { x, y, width: BOX, height: BOX, fill, rx: 1.5 }]]);
}

/** @param {CellColours} colours @param {SweepCell[]} cells @param {Map<string, string>} lacks */
function marksOf(colours, cells, lacks) {
  const ink = inks();
  const found = [];
  if (cells.some(({ start }) => start)) found.push({ text: AT_START, mark: swatchAt(colours.atStart) });
  for (const [lack, text] of lacks) found.push({ text, mark: swatchAt(colours.absent(lack)) });
  if (cells.some(({ lack }) => lack === "failed")) {
    const mark = (/** @type {number} */ x, /** @type {number} */ y) =>
      /** @type {Shape[]} */ ([
        ["path", { d: hatching(x, y, x + BOX, y + BOX), stroke: ink.muted, "stroke-width": 1, fill: "none" }],
        ["rect", { x: x + 0.5, y: y + 0.5, width: BOX - 1, height: BOX - 1, fill: "none", stroke: ink.muted }],
      ]);
    found.push({ text: "failed", mark });
  }
  if (cells.some(({ torn }) => torn)) {
    const mark = (/** @type {number} */ x, /** @type {number} */ y) => [dotShape(x + BOX / 2, y + BOX / 2)];
    const some = cells.some(({ failed, rows }) => failed && failed < rows.length);
    found.push({ text: some ? "seeds disagree, or some failed" : "seeds disagree", mark });
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
