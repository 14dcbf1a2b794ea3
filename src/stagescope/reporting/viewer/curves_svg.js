/** A plot of curves as a drawing for a file: what the page shows, with its legend. */

import { brief, clockText, count, short } from "./dom.js";
import { category, inks } from "./colours.js";
import { LEVEL_GAP, levelName, levelPlaces, levelRoom, ribbonBoxes } from "./plot.js";
import { round, textShape } from "./shapes.js";
import { axisTicks, polylines } from "./traces.js";

/** @typedef {import("./shapes.js").Shape} Shape */
/** @typedef {import("./lines.js").Line} Line */
/** @typedef {import("./plot.js").Box} Box */
/** @typedef {import("./curves.js").CurvesPlot} CurvesPlot */

const FIGURE_WIDTH = 760;
const FIGURE_HEIGHT = 320; // of the area of the curves
const FIGURE_MARGIN = { left: 72, right: 20, bottom: 44, top: 34 };
const ENTRY_COLUMN = 230; // pixels of an entry of the legend
const ENTRY_ROW = 16;

/**
 * @param {CurvesPlot} plot
 * @returns {import("./shapes.js").Drawing}
 */
export function curvesDrawing(plot) {
  const top = FIGURE_MARGIN.top + plot.ribbon.height;
  const box = {
    left: FIGURE_MARGIN.left,
    top,
    width: FIGURE_WIDTH - FIGURE_MARGIN.left - FIGURE_MARGIN.right - levelRoom(plot.levels),
    height: FIGURE_HEIGHT,
  };
  const shown = plot.lines.filter((line) => line.on);
  const named = shown.filter((line) => !line.faint);
  const columns = Math.floor(box.width / ENTRY_COLUMN);
  const foot = box.top + box.height + FIGURE_MARGIN.bottom;
  const shapes = [
    textShape(FIGURE_MARGIN.left, 18, brief(plot.views[0].view.title, 80), { "font-size": 13, "font-weight": 600 }),
    ...gridShapes(plot, box),
    ...ribbonShapes(plot, box),
    ...levelShapes(plot, box),
    ...shown.map((line) => pathShape(plot, line, box)),
    ...cursorShapes(plot, box),
    ...named.flatMap((line, i) =>
      curveEntry(plot, line, box.left + (i % columns) * ENTRY_COLUMN, foot + Math.floor(i / columns) * ENTRY_ROW),
    ),
  ];
  return { width: FIGURE_WIDTH, height: foot + Math.ceil(named.length / columns) * ENTRY_ROW, shapes };
}

/**
 * @param {CurvesPlot} plot
 * @param {Box} box
 * @returns {Shape[]}
 */
function gridShapes({ x, y, views, timeName }, box) {
  const { muted, line } = inks();
  const bottom = box.top + box.height;
  const across = axisTicks(x, box.width, 80).flatMap((t) => {
    const at = box.left + box.width * x.at(t);
    return /** @type {Shape[]} */ ([
      ["line", { x1: at, y1: bottom, x2: at, y2: bottom + 4, stroke: line }],
      textShape(at, bottom + 16, short(t, 6), { fill: muted, "text-anchor": "middle" }),
    ]);
  });
  const down = axisTicks(y, box.height, 40).flatMap((value) => {
    const at = bottom - box.height * y.at(value);
    return /** @type {Shape[]} */ ([
      ["line", { x1: box.left, y1: at, x2: box.left + box.width, y2: at, stroke: line }],
      textShape(box.left - 6, at + 4, short(value, 6), { fill: muted, "text-anchor": "end" }),
    ]);
  });
  const middle = box.top + box.height / 2;
  const names = [
    textShape(box.left + box.width / 2, bottom + 32, timeName, { fill: muted, "text-anchor": "middle" }),
    textShape(14, middle, brief(views[0].view.axis, 50), {
      fill: muted,
      "text-anchor": "middle",
      transform: `rotate(-90 14 ${round(middle)})`,
    }),
  ];
  return [...across, ...down, ...names];
}

/**
 * @param {CurvesPlot} plot
 * @param {Box} box
 * @returns {Shape[]}
 */
function ribbonShapes({ ribbon, x }, box) {
  return ribbonBoxes(ribbon, x, box, 1).flatMap(({ segment, left, width, top, height }) => {
    const fill = category(segment.colour);
    /** @type {Shape[]} */
    const parts = [["rect", { x: left, y: top, width, height, fill, "fill-opacity": height < 6 ? 0.7 : 0.22 }]];
    const name = brief(segment.name, 40);
    if (height >= 12 && name.length * 6 + 8 < width)
      parts.push(textShape(left + 4, top + height - 4, name, { "font-size": 10.5 }));
    return parts;
  });
}

/**
 * @param {CurvesPlot} plot
 * @param {Box} box
 * @returns {Shape[]}
 */
function levelShapes({ levels, y }, box) {
  const right = box.left + box.width;
  return levelPlaces(levels, y, box, 1).flatMap(({ level, at, label }) => {
    /** @type {Shape[]} */
    const parts = [["line", { x1: box.left, y1: at, x2: right, y2: at, stroke: level.colour(), "stroke-dasharray": "5 4" }]];
    if (!Number.isNaN(label))
      parts.push(textShape(right + LEVEL_GAP, label, levelName(level), { fill: level.colour(), "font-size": 10.5 }));
    return parts;
  });
}

/**
 * @param {CurvesPlot} plot
 * @param {Line} line
 * @param {Box} box
 * @returns {Shape}
 */
function pathShape({ scene, x, y }, line, box) {
  const xs = scene.timesOf(line.run, line.view).map((t) => (x.log && t < x.min ? NaN : box.left + box.width * x.at(t)));
  const path = polylines(xs, line.values, y, box.top, box.height).map((points) => {
    const pairs = Array.from({ length: points.length / 2 }, (_, i) => `${round(points[2 * i])} ${round(points[2 * i + 1])}`);
    return `M${pairs.length === 1 ? `${pairs[0]}l0.01 0` : pairs.join("L")}`;
  });
  const dash = line.dash.join(" ") || "none";
  const width = line.faint ? 1 : 1.75;
  return [
    "path",
    {
      d: path.join(""),
      fill: "none",
      stroke: line.colour(),
      "stroke-width": width,
      "stroke-dasharray": dash,
      "stroke-linejoin": "round",
      "stroke-linecap": "round",
    },
  ];
}

/**
 * @param {CurvesPlot} plot
 * @param {Box} box
 * @returns {Shape[]}
 */
function cursorShapes({ scene, x }, box) {
  const share = x.at(scene.time);
  const at = box.left + box.width * (Number.isNaN(share) ? 0 : Math.min(1, Math.max(0, share)));
  const { accent } = inks();
  const text = `frame ${count(scene.position + 1)}, ${clockText(scene.clock, scene.time)}`;
  return [
    ["line", { x1: at, y1: box.top, x2: at, y2: box.top + box.height, stroke: accent }],
    textShape(FIGURE_WIDTH - FIGURE_MARGIN.right, 18, text, { fill: accent, "text-anchor": "end" }),
  ];
}

/**
 * @param {CurvesPlot} plot
 * @param {Line} line
 * @param {number} left
 * @param {number} base
 * @returns {Shape[]}
 */
function curveEntry({ scene, views }, line, left, base) {
  const run = views.length > 1 ? `${brief(scene.runs[line.run].short, 14)}: ` : "";
  const value = line.values[scene.frameOf(line.run, line.view).place];
  return [
    [
      "line",
      {
        x1: left,
        y1: base - 4,
        x2: left + 20,
        y2: base - 4,
        stroke: line.colour(),
        "stroke-width": 2,
        "stroke-dasharray": line.dash.join(" ") || "none",
      },
    ],
    textShape(left + 26, base, `${run}${brief(line.name, 18)}  ${short(value)}`),
  ];
}
