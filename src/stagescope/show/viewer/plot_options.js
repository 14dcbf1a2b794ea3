/** What uPlot is told: axes, scales, and how to trace a line from the frames of its run. */

import { inks } from "./colours.js";
import { brief, short } from "./dom.js";
import { PLOT_FONT, plotType, drawLevels, drawMoments, drawPredicted, drawRibbon, drawRungs } from "./plot.js";
import { axisTicks, polylines } from "./traces.js";

/** @typedef {import("./curves.js").CurvesPlot} CurvesPlot */
/** @typedef {import("./lines.js").Line} Line */
/** @typedef {import("./traces.js").Axis} Axis */

const LETTER = 6.2; // pixels of a digit
const LEAST_LETTERS = 6; // beside an axis, so that plots below each other begin at one place
const RIGHT_EDGE = 18; // pixels to the right of a plot: half of the last number under it

/**
 * uPlot is given shares of the axes, 0 to 1, whatever the values are: beyond 17 digits or below 1e-16 it would draw no axis.
 * @param {CurvesPlot} plot
 * @returns {object}
 */
export function plotOptions(plot) {
  const { y, lines, levels, moments } = plot;
  const large = document.body.classList.contains("guided");
  const ribbon = large ? { rows: [], lane: 0, height: 0 } : plot.ribbon; // in a lecture the ribbon below is enough
  const trace = tracer(plot);
  const predicted = plot.slot === "loss" ? plot.scene.runs.flatMap(({ data }) => data.prediction ?? []) : [];
  const labelled = (/** @type {uPlot} */ _, /** @type {string[]|null} */ marks) =>
    14 + (LETTER / 11) * plotType(11) * Math.max(LEAST_LETTERS, ...(marks ?? []).map((mark) => mark.length));
  const behind = (/** @type {uPlot} */ u) => {
    const { x } = plot;
    drawMoments(u.ctx, moments, x, u.bbox, devicePixelRatio);
    drawLevels(u.ctx, levels, y, u.bbox, devicePixelRatio);
    drawPredicted(u.ctx, predicted, x, u.bbox, devicePixelRatio);
  };
  const ladders = plot.slot === "loss" ? plot.scene.runs.map(({ data }) => data.ladder ?? []) : [];
  const above = (/** @type {uPlot} */ u) => {
    drawRibbon(u.ctx, ribbon, plot.x, u.bbox, devicePixelRatio);
    drawRungs(u.ctx, ladders, ribbon, plot.x, u.bbox, devicePixelRatio);
  };
  return {
    width: plot.width,
    height: plot.height,
    padding: [ribbon.height + (ladders.some((rungs) => rungs.length) ? 14 : 8), RIGHT_EDGE, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { time: false, range: () => [0, 1] },
      y: { range: () => [0, 1] },
    },
    axes: [
      { ...axisOptions(() => plot.x, 6 * plotType(11), "width"), grid: { show: false }, size: large ? 34 : 26, label: plot.timeName },
      { ...axisOptions(() => y, 3 * plotType(11), "height"), size: labelled, label: brief(plot.views[0].view.axis, 50) },
    ],
    series: [{}, ...lines.map((line) => seriesOptions(line, trace))],
    hooks: { drawAxes: [behind], draw: [above] },
  };
}

/** @param {() => Axis} axis @param {number} gap pixels between two numbers @param {"width"|"height"} side */
function axisOptions(axis, gap, side) {
  const large = document.body.classList.contains("guided");
  const font = `${plotType(11)}px ${PLOT_FONT}`;
  const ticks = (/** @type {uPlot} */ u) => axisTicks(axis(), u.bbox[side] / devicePixelRatio, gap);
  return {
    font,
    labelFont: font,
    labelSize: large ? 26 : 18,
    labelGap: 0,
    gap: 4,
    stroke: () => inks().muted,
    grid: { stroke: () => inks().line, width: 1 },
    ticks: { stroke: () => inks().line, width: 1, size: 4 },
    splits: (/** @type {uPlot} */ u) => ticks(u).map((value) => axis().at(value)),
    values: (/** @type {uPlot} */ u) => ticks(u).map((value) => short(value, 6)),
  };
}

/** @param {Line} line @param {(u: uPlot, line: Line) => Path2D} trace */
function seriesOptions(line, trace) {
  const rest = { fill: null, band: null, gaps: null, flags: 0 };
  return {
    show: line.on,
    width: (line.faint ? 1 : 1.75) * (document.body.classList.contains("guided") ? 2 : 1),
    stroke: line.colour,
    dash: line.dash,
    points: { show: false },
    paths: (/** @type {uPlot} */ u) => ({ stroke: trace(u, line), clip: inside(u), ...rest }),
  };
}

/** The area of the curves: lines of a window of time go on beyond its ends. @param {uPlot} u */
function inside({ bbox: { left, top, width, height } }) {
  const area = new Path2D();
  area.rect(left, top - 4, width, height + 8);
  return area;
}

/**
 * Traces lines in pixels of the canvas. Lines of one run share where their frames lie across.
 * @param {CurvesPlot} plot
 * @returns {(u: uPlot, line: Line) => Path2D}
 */
function tracer(plot) {
  const { scene, y } = plot;
  /** @type {Map<Float64Array, Float64Array>} */
  const across = new Map();
  let drawn = "";
  /** @type {Axis|null} */
  let along = null;
  return (u, line) => {
    const { x } = plot;
    const { left, top, width, height } = u.bbox;
    if (drawn !== `${left} ${width}` || along !== x) across.clear();
    drawn = `${left} ${width}`;
    along = x;
    const times = scene.timesOf(line.run, line.view);
    const xs = across.get(times) ?? times.map((t) => (x.log && t <= 0 ? NaN : left + width * x.at(t)));
    across.set(times, xs);
    const path = new Path2D();
    for (const points of polylines(xs, line.values, y, top, height)) {
      path.moveTo(points[0], points[1]);
      if (points.length === 2) path.arc(points[0], points[1], devicePixelRatio, 0, 7); // a frame alone between gaps
      for (let i = 2; i < points.length; i += 2) path.lineTo(points[i], points[i + 1]);
    }
    return path;
  };
}
