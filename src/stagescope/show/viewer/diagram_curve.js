/**
 * A diagram over one axis: medians with their intervals, or a row for each name with the share of seeds as the size of a dot.
 * Cells without a median stand in lanes: above the values those that a longer run might give one, below them those that were
 * there at the start, failed, or have none.
 */

import { inks } from "./colours.js";
import { axisName, DiagramFrame, marksAlong, ROW_LINE } from "./diagram_frame.js";
import { dotShape, legendRows } from "./diagram_legend.js";
import { AT_START, lacksOf, unitText } from "./diagram_words.js";
import { short } from "./dom.js";
import { markPath, round, toldApart } from "./shapes.js";
import { BEYOND } from "./sweep.js";
import { extent, valueAxis, axisTicks } from "./traces.js";

/** @typedef {import("./shapes.js").Shape} Shape */
/** @typedef {import("./sweep.js").SweepTable} SweepTable */
/** @typedef {import("./sweep.js").SweepCell} SweepCell */
/** @typedef {import("./sweep.js").Ask} Ask */
/** @typedef {import("./cell_colours.js").CellColours} CellColours */
/** @typedef {import("./diagram_map.js").Picture} Picture */

const HEIGHT = 340;
const LANE = 34;
const COLUMN = 58;
const SIDE_LANE = 0.08; // of the height of the values, for cells without one
const NAMES = 7;
const NAME_WIDTH = 230; // px beside a lane
const NAME_LINES = 3;

/**
 * @param {SweepTable} table
 * @param {Ask} ask
 * @param {SweepCell[]} cells
 * @param {CellColours} colours
 * @param {number} width px
 * @returns {Picture}
 */
export function curvePicture(table, ask, cells, colours, width) {
  const ruler = table.ruler(ask.x);
  const drawn = colours.numeric ? valueCurve(table, ask, cells, colours, width) : shareDots(table, ask, cells, colours, width);
  const { frame, body, height } = drawn;
  const columns = marksAlong(ruler, frame.right - frame.left, COLUMN);
  const place = (/** @type {number} */ i) => frame.x(ruler.place(cells[i].x));
  const point = (/** @type {number} */ i) => /** @type {[number, number]} */ ([place(i), height(i)]);
  const lanes = cells.flatMap((cell, i) => {
    const kind = stateOf(cell) ?? (!colours.numeric && cell.failed ? "failed" : null); // some of the seeds
    return kind === null ? [] : laneMark(place(i), colours.numeric ? height(i) : frame.bottom - 10, kind, colours);
  });
  const said = curveLegend(table, frame, cells, colours);
  return {
    width,
    height: said.bottom,
    shapes: [...frame.shapes(columns, axisName(ruler), colours.numeric ? unitText(table, colours.column, cells) : ""), ...body, ...lanes, ...said.shapes],
    hit: (px, py) => (py < frame.top || py > frame.foot ? -1 : closestTo(px, cells.map((_, i) => place(i)))), // prettier-ignore
    outline: (i) => [
      ["line", { x1: place(i), x2: place(i), y1: frame.top, y2: frame.bottom, stroke: inks().accent, "stroke-width": 1.2 }],
      ["circle", { cx: place(i), cy: height(i), r: 5.5, fill: "none", stroke: inks().accent, "stroke-width": 2 }],
    ],
    point,
  };
}

/** Why a cell stands in a lane; null where it is on the curve. @param {SweepCell} cell */
function stateOf({ start, lack }) {
  return start ? "start" : lack;
}

/** @param {number} px @param {number[]} places */
function closestTo(px, places) {
  let best = -1;
  places.forEach((place, i) => {
    if (best < 0 || Math.abs(place - px) < Math.abs(places[best] - px)) best = i;
  });
  return best;
}

/**
 * Where values lie between 0 and 1, and the values written beside them.
 * @param {CellColours} colours
 * @param {number[][]} arrays
 * @returns {{at: (value: number) => number, marks: number[]}}
 */
function heights({ scale }, arrays) {
  if (scale.signed && scale.log) return { at: (value) => 0.03 + 0.94 * scale.place(value), marks: scale.marks(HEIGHT, 44) };
  const axis = valueAxis(extent(arrays, scale.log), scale.log);
  return { at: (value) => axis.at(value), marks: scale.any ? axisTicks(axis, HEIGHT, 44) : [] };
}

/**
 * @param {SweepTable} table
 * @param {Ask} ask
 * @param {SweepCell[]} cells
 * @param {CellColours} colours
 * @param {number} width
 */
function valueCurve(table, ask, cells, colours, width) {
  const ruler = table.ruler(ask.x);
  const spans = cells.map((cell) => cell.interval ?? (stateOf(cell) === null ? [cell.value ?? NaN, cell.value] : null));
  const values = cells.map((cell) => (stateOf(cell) === null ? (cell.value ?? NaN) : NaN));
  const { at, marks } = heights(colours, [values, spans.flatMap((span) => (span ? span.map((end) => end ?? NaN) : []))]);
  const above = cells.some(({ lack }) => BEYOND.includes(lack ?? ""));
  const below = cells.some((cell) => stateOf(cell) !== null && !BEYOND.includes(cell.lack ?? ""));
  const ends = /** @type {[number, number]} */ ([below ? -SIDE_LANE : 0, above ? 1 + SIDE_LANE : 1]);
  const frame = new DiagramFrame(width, HEIGHT, ruler.reach, ends, marks.map((value) => ({ place: at(value), text: short(value, 5) })));
  const order = cells.map((_, i) => i).sort((a, b) => cells[a].x - cells[b].x);
  const x = (/** @type {number} */ i) => round(frame.x(ruler.place(cells[i].x)));
  const y = (/** @type {number} */ value) => round(frame.y(at(value)));
  const low = (/** @type {number} */ i) => round(frame.y(Math.max(0, at(spans[i]?.[0] ?? NaN) || 0))); // 0 is not on a logarithmic axis
  const high = (/** @type {number} */ i) => (spans[i]?.[1] == null ? round(frame.y(1)) : y(/** @type {number} */ (spans[i]?.[1]))); // open upwards
  const colour = colours.ramp(colours.scale.signed ? 0.9 : 0.55);
  const rims = [...(above ? [1] : []), ...(below ? [0] : [])].map((place) => round(frame.y(place)));
  /** @type {Shape[]} */
  const body = rims.map((rim) => ["line", { x1: frame.left, x2: frame.right, y1: rim, y2: rim, stroke: inks().line }]);
  for (const part of ruler.named ? [] : stretches(order, (i) => spans[i] !== null)) {
    const upper = part.map((i) => `${x(i)} ${high(i)}`);
    const lower = part.map((i) => `${x(i)} ${low(i)}`).reverse();
    body.push(["path", { d: `M${[...upper, ...lower].join("L")}Z`, fill: colour, opacity: 0.2 }]);
  }
  const known = (/** @type {number} */ i) => !Number.isNaN(values[i]);
  for (const part of ruler.named ? [] : stretches(order, known)) {
    body.push(["path", { d: `M${part.map((i) => `${x(i)} ${y(values[i])}`).join("L")}`, fill: "none", stroke: colour, "stroke-width": 1.8 }]);
  }
  for (const i of ruler.named ? order.filter((each) => spans[each]) : []) {
    body.push(["line", { x1: x(i), x2: x(i), y1: low(i), y2: high(i), stroke: colour, "stroke-width": 3, opacity: 0.5 }]);
  }
  for (const i of order.filter(known)) body.push(["circle", { cx: x(i), cy: y(values[i]), r: 3.2, fill: colour }]);
  body.push(...order.filter((i) => known(i) && cells[i].torn).map((i) => dotShape(x(i), y(values[i]))));
  const lane = (/** @type {number} */ i) => frame.y(BEYOND.includes(cells[i].lack ?? "") ? 1 + SIDE_LANE / 2 : -SIDE_LANE / 2);
  return { frame, body, height: (/** @type {number} */ i) => (known(i) ? y(values[i]) : lane(i)) };
}

/** Stretches of neighbours that all have something. @param {number[]} order @param {(i: number) => boolean} has @returns {number[][]} */
function stretches(order, has) {
  /** @type {number[][]} */
  const found = [[]];
  for (const i of order) {
    if (has(i)) found[found.length - 1].push(i);
    else found.push([]);
  }
  return found.filter((part) => part.length);
}

/**
 * @param {SweepTable} table
 * @param {Ask} ask
 * @param {SweepCell[]} cells
 * @param {CellColours} colours
 * @param {number} width
 */
function shareDots(table, ask, cells, colours, width) {
  const ruler = table.ruler(ask.x);
  const used = [...new Set(cells.flatMap(({ shares }) => shares.map(({ item }) => item)))].sort((a, b) => a - b);
  const lanes = used.slice(0, NAMES);
  const others = used.length > NAMES;
  const count = lanes.length + Number(others);
  const laneOf = (/** @type {number} */ item) => (lanes.includes(item) ? lanes.indexOf(item) : count - 1);
  const names = toldApart(lanes.map((item) => colours.names[item]), Math.min(NAME_WIDTH, width / 3), 12, NAME_LINES); // prettier-ignore
  const marks = names.map((lines, lane) => ({ place: lane, text: lines.join("\n") }));
  if (others) marks.push({ place: count - 1, text: used.length - NAMES === 1 ? "1 other" : `${used.length - NAMES} others` });
  const deep = Math.max(LANE, ...names.map((lines) => 12 + lines.length * ROW_LINE));
  const frame = new DiagramFrame(width, Math.max(120, (count + 1.2) * deep), ruler.reach, [-1.2, Math.max(count, 1) - 0.4], marks);
  /** @type {Shape[]} */
  const body = cells.flatMap(({ x, shares }) =>
    shares.map(
      ({ item, share }) =>
        /** @type {Shape} */ ([
          "circle",
          { cx: frame.x(ruler.place(x)), cy: frame.y(laneOf(item)), r: 5.5 * Math.sqrt(share), fill: colours.hue(item) },
        ]),
    ),
  );
  const height = (/** @type {number} */ i) => (cells[i].value === null ? frame.bottom - 10 : frame.y(laneOf(cells[i].value ?? 0)));
  return { frame, body, height };
}

/** A triangle where the value is beyond, a diamond where it was there at the start, a cross where runs failed, else a stroke.
 * @param {number} x @param {number} y @param {string} kind @param {CellColours} colours @returns {Shape[]} */
function laneMark(x, y, kind, colours) {
  if (BEYOND.includes(kind)) return [["path", { d: markPath(0, x, y, 5), fill: "none", stroke: inks().ink, "stroke-width": 1.4 }]];
  if (kind === "start") return [["path", { d: markPath(3, x, y, 5.5), fill: colours.atStart, stroke: inks().ink, "stroke-width": 0.8 }]];
  const d = kind === "failed" ? `M${x - 3.5} ${y - 3.5}l7 7M${x + 3.5} ${y - 3.5}l-7 7` : `M${x} ${y - 4}v8`;
  return [["path", { d, fill: "none", stroke: inks().muted, "stroke-width": 1.5 }]];
}

/** @param {SweepTable} table @param {DiagramFrame} frame @param {SweepCell[]} cells @param {CellColours} colours */
function curveLegend(table, frame, cells, colours) {
  /** @type {[kind: string, text: string][]} */
  const entries = [...lacksOf(table, colours.column, cells)];
  if (cells.some(({ start }) => start)) entries.push(["start", AT_START]);
  const some = cells.some(({ failed, rows }) => failed && failed < rows.length);
  if (cells.some(({ lack }) => lack === "failed") || (some && !colours.numeric)) entries.push(["failed", some && !colours.numeric ? "failed, or some of the seeds" : "failed"]); // prettier-ignore
  if (colours.numeric && cells.some(({ interval }) => interval)) entries.push(["", "band: bootstrap interval of the median"]);
  if (!colours.numeric && cells.some(({ torn }) => torn)) entries.push(["", "area of a dot: share of seeds"]);
  const marked = entries.map(([kind, text]) => {
    const mark = (/** @type {number} */ x, /** @type {number} */ y) => laneMark(x + 6, y + 6, kind, colours);
    return { text, mark: kind ? mark : null };
  });
  return legendRows(marked, frame.left, frame.foot, frame.right);
}
