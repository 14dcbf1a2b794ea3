/** A diagram over two axes: every cell as the area it covers. */

import { inks } from "./colours.js";
import { axisName, DiagramFrame, marksAlong } from "./diagram_frame.js";
import { boundaryShown } from "./diagram_head.js";
import { diagramLegend, dotShape, hatching } from "./diagram_legend.js";
import { lacksOf, unitText } from "./diagram_words.js";
import { round } from "./shapes.js";

/** @typedef {import("./shapes.js").Shape} Shape */
/** @typedef {import("./sweep.js").SweepTable} SweepTable */
/** @typedef {import("./sweep.js").SweepCell} SweepCell */
/** @typedef {import("./sweep.js").Ask} Ask */
/** @typedef {import("./cell_colours.js").CellColours} CellColours */
/** @typedef {{left: number, top: number, right: number, bottom: number}} Pixels */
/**
 * @typedef {{width: number, height: number, shapes: Shape[], hit: (x: number, y: number) => number,
 *   outline: (i: number) => Shape[], point: (i: number) => [number, number]}} Picture
 *   What is drawn, which cell is under a pixel (-1: none), how a cell is framed, and where it is.
 */

const ASPECT = 0.72;
const TALLEST = 620;
const ROW_GAP = 26;
const COLUMN_GAP = 58;
const RIM = 2; // px, half of them outside

/**
 * @param {SweepTable} table
 * @param {Ask} ask
 * @param {SweepCell[]} cells
 * @param {CellColours} colours
 * @param {number} width px
 * @returns {Picture}
 */
export function mapPicture(table, ask, cells, colours, width) {
  const x = table.ruler(ask.x);
  const y = table.ruler(/** @type {string} */ (ask.y));
  const height = Math.min(TALLEST, Math.max(220, ASPECT * width));
  const frame = new DiagramFrame(width, height, x.reach, y.reach, marksAlong(y, height, ROW_GAP));
  const rects = table.areas(x.name, y.name, cells).map((list) => list.map((rect) => inPixels(frame, rect)));
  const said = lacksOf(table, colours.column, cells);
  const legend = diagramLegend(colours, cells, said, unitText(table, colours.column, cells), frame.left, frame.foot, frame.right);
  const point = (/** @type {number} */ i) =>
    /** @type {[number, number]} */ ([frame.x(x.place(cells[i].x)), frame.y(y.place(cells[i].y))]);
  const dots = cells.flatMap((cell, i) => (cell.torn ? [dotShape(...point(i))] : []));
  const columns = marksAlong(x, frame.right - frame.left, COLUMN_GAP);
  return {
    width,
    height: legend.bottom + 4,
    shapes: [rimShape(rects), ...areaShapes(cells, colours, rects), ...boundaryShapes(table, ask, frame), ...dots, ...frame.shapes(columns, axisName(x), axisName(y)), ...legend.shapes],
    hit: (px, py) => rects.findIndex((list) => list.some((rect) => holds(rect, px, py))),
    outline: (i) => [...outlineOf(rects[i]), ...areaShapes([cells[i]], colours, [rects[i]]), ...(cells[i].torn ? [dotShape(...point(i))] : [])],
    point,
  };
}

/** A line of theory, dark in a light one; broken where it has no place. @param {SweepTable} table @param {Ask} ask @param {DiagramFrame} frame @returns {Shape[]} */
function boundaryShapes(table, ask, frame) {
  const line = table.data.boundary;
  if (!line || !boundaryShown(table, ask)) return [];
  const [across, upwards] = [ask.x, ask.y].map((name) => line.places[line.axes.indexOf(name ?? "")]);
  let d = "";
  let drawing = false;
  across.forEach((x, i) => {
    const y = upwards[i];
    if (x !== null && y !== null) d += `${drawing ? "L" : "M"}${round(frame.x(x))} ${round(frame.y(y))}`;
    drawing = x !== null && y !== null;
  });
  const { ink, paper } = inks();
  return [
    ["path", { d, fill: "none", stroke: paper, "stroke-width": 5 }],
    ["path", { d, fill: "none", stroke: ink, "stroke-width": 2 }],
  ];
}

/** @param {DiagramFrame} frame @param {import("./sweep.js").Rect} rect @returns {Pixels} */
function inPixels(frame, { left, right, bottom, top }) {
  return { left: frame.x(left), right: frame.x(right), top: frame.y(top), bottom: frame.y(bottom) };
}

/** @param {Pixels} rect @param {number} x @param {number} y */
function holds({ left, right, top, bottom }, x, y) {
  return x >= left && x < right && y >= top && y < bottom;
}

/**
 * Areas of one colour in one path; hatched where all runs failed.
 * @param {SweepCell[]} cells
 * @param {CellColours} colours
 * @param {Pixels[][]} rects
 * @returns {Shape[]}
 */
function areaShapes(cells, colours, rects) {
  /** @type {Map<string, string>} */
  const paths = new Map();
  let hatched = "";
  cells.forEach((cell, i) => {
    for (const rect of rects[i]) {
      const broken = cell.lack === "failed";
      const fill = broken ? inks().paper : colours.fill(cell);
      paths.set(fill, (paths.get(fill) ?? "") + pathOf(rect));
      if (broken) hatched += hatching(rect.left, rect.top, rect.right, rect.bottom);
    }
  });
  /** @type {Shape[]} */
  const areas = [...paths].map(([fill, d]) => ["path", { d, fill }]);
  /** @type {Shape[]} */
  const strokes = hatched ? [["path", { d: hatched, fill: "none", stroke: inks().muted, "stroke-width": 1 }]] : [];
  return [["g", { "shape-rendering": "crispEdges" }, areas], ...strokes];
}

/** A line around all areas together, under them: a pale cell is not taken for one that does not exist. @param {Pixels[][]} rects @returns {Shape} */
function rimShape(rects) {
  return ["path", { d: rects.flat().map(pathOf).join(""), fill: "none", stroke: inks().muted, "stroke-width": RIM }];
}

/** @param {Pixels} rect */
function pathOf({ left, right, top, bottom }) {
  return `M${round(left)} ${round(top)}H${round(right)}V${round(bottom)}H${round(left)}Z`;
}

/** A dark frame inside a light one, seen on any colour; the cell itself is drawn on it. @param {Pixels[]} list @returns {Shape[]} */
function outlineOf(list) {
  const d = list.map(pathOf).join("");
  const { ink, paper } = inks();
  return [
    ["path", { d, fill: "none", stroke: paper, "stroke-width": 7 }],
    ["path", { d, fill: paper, stroke: ink, "stroke-width": 4 }],
  ];
}
