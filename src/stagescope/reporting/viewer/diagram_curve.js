/** A diagram over one axis: medians with their intervals, or a row for each name with the share of seeds as the size of a dot. */

import { inks } from "./colours.js";
import { DiagramFrame, marksAlong } from "./diagram_frame.js";
import { dotShape } from "./diagram_legend.js";
import { brief, short } from "./dom.js";
import { round, textShape } from "./shapes.js";
import { axisTicks, extent, valueAxis } from "./traces.js";

/** @typedef {import("./shapes.js").Shape} Shape */
/** @typedef {import("./sweep.js").SweepTable} SweepTable */
/** @typedef {import("./sweep.js").SweepCell} SweepCell */
/** @typedef {import("./sweep.js").Ask} Ask */
/** @typedef {import("./cell_colours.js").CellColours} CellColours */
/** @typedef {import("./diagram_map.js").Picture} Picture */

const HEIGHT = 340;
const LANE = 34;
const COLUMN = 58;
const FOOT_ROOM = 0.08; // of the height below the values, for runs without one
const NAMES = 7;

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
  const feet = cells.flatMap((cell, i) => (cell.value === null ? footMark(place(i), frame.bottom - 10, cell.failed > 0) : []));
  const said = footLegend(frame, cells, colours);
  return {
    width,
    height: frame.foot + (said.length ? 24 : 0),
    shapes: [...frame.shapes(columns, ask.x, colours.numeric ? ask.color : ""), ...body, ...feet, ...said],
    hit: (px, py) => (py < frame.top || py > frame.foot ? -1 : closestTo(px, cells.map((_, i) => place(i)))), // prettier-ignore
    outline: (i) => [
      ["line", { x1: place(i), x2: place(i), y1: frame.top, y2: frame.bottom, stroke: inks().accent, "stroke-width": 1.2 }],
      ["circle", { cx: place(i), cy: height(i), r: 5.5, fill: "none", stroke: inks().accent, "stroke-width": 2 }],
    ],
    point,
  };
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
 * @param {SweepTable} table
 * @param {Ask} ask
 * @param {SweepCell[]} cells
 * @param {CellColours} colours
 * @param {number} width
 */
function valueCurve(table, ask, cells, colours, width) {
  const column = table.column(ask.color);
  const ruler = table.ruler(ask.x);
  const spans = cells.map(({ rows, value }) => table.interval(column, rows) ?? [value ?? NaN, value ?? NaN]);
  const values = cells.map(({ value }) => value ?? NaN);
  const axis = valueAxis(extent([values, ...spans], colours.log), colours.log);
  const marks = axisTicks(axis, HEIGHT, 44).map((value) => ({ place: axis.at(value), text: short(value, 5) }));
  const frame = new DiagramFrame(width, HEIGHT, ruler.reach, [-FOOT_ROOM, 1], colours.any ? marks : []);
  const order = cells.map((_, i) => i).filter((i) => cells[i].value !== null);
  order.sort((a, b) => cells[a].x - cells[b].x);
  const x = (/** @type {number} */ i) => round(frame.x(ruler.place(cells[i].x)));
  const y = (/** @type {number} */ value) => round(frame.y(axis.at(value)));
  const colour = colours.ramp(0.55);
  /** @type {Shape[]} */
  const body = [];
  for (const part of ruler.named ? [] : parts(order, cells)) {
    const upper = part.map((i) => `${x(i)} ${y(spans[i][1])}`);
    const lower = part.map((i) => `${x(i)} ${y(spans[i][0])}`).reverse();
    body.push(["path", { d: `M${[...upper, ...lower].join("L")}Z`, fill: colour, opacity: 0.2 }]);
    body.push(["path", { d: `M${part.map((i) => `${x(i)} ${y(values[i])}`).join("L")}`, fill: "none", stroke: colour, "stroke-width": 1.8 }]);
  }
  for (const i of ruler.named ? order : []) {
    body.push(["line", { x1: x(i), x2: x(i), y1: y(spans[i][0]), y2: y(spans[i][1]), stroke: colour, "stroke-width": 3, opacity: 0.5 }]);
  }
  for (const i of order) body.push(["circle", { cx: x(i), cy: y(values[i]), r: 3.2, fill: colour }]);
  body.push(...order.filter((i) => cells[i].torn).map((i) => dotShape(x(i), y(values[i]))));
  const height = (/** @type {number} */ i) => (cells[i].value === null ? frame.bottom - 10 : y(values[i]));
  return { frame, body, height };
}

/** Stretches of neighbouring cells that all have a value. @param {number[]} order @param {SweepCell[]} cells */
function parts(order, cells) {
  const missing = cells.filter(({ value }) => value === null).map(({ x }) => x);
  /** @type {number[][]} */
  const found = [];
  order.forEach((i, k) => {
    const before = k ? cells[order[k - 1]].x : NaN;
    const broken = !k || missing.some((x) => x > before && x < cells[i].x);
    if (broken) found.push([i]);
    else found[found.length - 1].push(i);
  });
  return found;
}

/**
 * @param {SweepTable} table
 * @param {Ask} ask
 * @param {SweepCell[]} cells
 * @param {CellColours} colours
 * @param {number} width
 */
function shareDots(table, ask, cells, colours, width) {
  const column = table.column(ask.color);
  const ruler = table.ruler(ask.x);
  const used = colours.ranked.filter((item) => cells.some(({ rows }) => table.known(column, rows).includes(item)));
  const lanes = used.slice(0, NAMES);
  const others = used.length > NAMES;
  const count = lanes.length + Number(others);
  const laneOf = (/** @type {number} */ item) => (lanes.includes(item) ? lanes.indexOf(item) : count - 1);
  const marks = lanes.map((item, lane) => ({ place: lane, text: brief((column.names ?? [])[item], 40) }));
  if (others) marks.push({ place: count - 1, text: `${used.length - NAMES} others` });
  const frame = new DiagramFrame(width, Math.max(120, (count + 1.2) * LANE), ruler.reach, [-1.2, Math.max(count, 1) - 0.4], marks);
  /** @type {Shape[]} */
  const body = cells.flatMap(({ x, rows }) =>
    table.shares(column, rows).map(
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

/** @param {number} x @param {number} y @param {boolean} failed @returns {Shape[]} a cross, or a stroke */
function footMark(x, y, failed) {
  const d = failed ? `M${x - 3.5} ${y - 3.5}l7 7M${x + 3.5} ${y - 3.5}l-7 7` : `M${x} ${y - 4}v8`;
  return [["path", { d, fill: "none", stroke: inks().muted, "stroke-width": 1.5 }]];
}

/** @param {DiagramFrame} frame @param {SweepCell[]} cells @param {CellColours} colours @returns {Shape[]} */
function footLegend(frame, cells, colours) {
  const y = frame.foot + 4;
  const small = { fill: inks().muted, "font-size": 12 };
  const none = cells.some(({ value, failed }) => value === null && !failed);
  const failed = cells.some(({ value, failed: broken }) => value === null && broken);
  let x = frame.left;
  /** @type {Shape[]} */
  const shapes = [];
  for (const [shown, cross, text] of /** @type {const} */ ([[none, false, colours.column.absent], [failed, true, "failed"]])) { // prettier-ignore
    if (!shown) continue;
    shapes.push(...footMark(x + 5, y, cross), textShape(x + 16, y + 4, text, small));
    x += 44 + text.length * 6.1;
  }
  const torn = cells.some((cell) => cell.torn);
  const many = colours.numeric && cells.some(({ known }) => known > 1);
  const said = many ? "band: bootstrap interval of the median" : torn ? "area of a dot: share of seeds" : "";
  if (said) shapes.push(textShape(x, y + 4, said, small));
  return shapes;
}
