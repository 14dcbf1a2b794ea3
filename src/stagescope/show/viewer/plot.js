/** What a plot has besides its curves: stages above, levels across, and how these look on a canvas. */

import { brief, clean, short } from "./dom.js";
import { category, inks } from "./colours.js";
import { lanesOf, namedLanes } from "./stages.js";
import { spread } from "./traces.js";

/** @typedef {import("./traces.js").Axis} Axis */
/** @typedef {import("./stages.js").Ribbon} Ribbon */
/** @typedef {import("./stages.js").Moment} Moment */
/** @typedef {import("./lines.js").LevelLine} LevelLine */
/** @typedef {{left: number, top: number, width: number, height: number}} Box */

export const PLOT_FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
const SMALL = 10.5; // pixels of the smallest type

/** Pixels of the type beside plots: in a lecture it is read from the last row. @param {number} usual */
export function plotType(usual) {
  return document.body.classList.contains("guided") ? Math.round(Math.min(20, Math.max(14, 7.5 + 0.006 * innerWidth))) : usual;
}
const NAMED_LANES = 5; // lanes up to which stages have names above the loss
const HAIRLINES = 12; // events that are drawn across a plot
const LONGEST_LEVEL = 34; // characters of a level's name in a plot; the legend has all of it

/**
 * Where the stages of all runs lie above a plot: named lanes on the loss if they are few, else thin ones of the runs themselves.
 * @param {Ribbon[]} ribbons
 * @param {boolean} named
 * @returns {{rows: {segments: import("./stages.js").Segment[], named: {name: string, lane: number}[], top: number, run: number}[], lane: number, height: number}}
 */
export function ribbonRows(ribbons, named) {
  const lanes = lanesOf(ribbons, named ? NAMED_LANES : 1);
  const lane = named && lanes.reduce((sum, n) => sum + n, 0) <= NAMED_LANES ? 15 : 4;
  let top = 0;
  const rows = ribbons.flatMap((ribbon, run) => {
    if (!lanes[run]) return [];
    const named = ribbons.length > 1 ? [] : namedLanes(ribbon, lanes[run]);
    const row = { segments: ribbon.segments.filter((segment) => segment.lane < lanes[run]), named, top, run };
    top += lanes[run] * (lane + 1) + 2;
    return [row];
  });
  return { rows, lane, height: top };
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {ReturnType<typeof ribbonRows>} ribbon
 * @param {Axis} x
 * @param {Box} box of the plot; the ribbon lies above it
 * @param {number} unit pixels a CSS pixel
 */
export function drawRibbon(pen, ribbon, x, box, unit) {
  pen.save();
  pen.font = `${SMALL * unit}px ${PLOT_FONT}`;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  const clip = (/** @type {number} */ t) => box.left + box.width * Math.min(1, Math.max(0, x.at(t) || 0));
  const height = ribbon.lane * unit;
  const topOf = (/** @type {number} */ row, /** @type {number} */ lane) => box.top - (ribbon.height + 4 - row - lane * (ribbon.lane + 1)) * unit;
  for (const [segment, row] of ribbon.rows.flatMap(({ segments, top }) => segments.map((one) => /** @type {const} */ ([one, top])))) {
    if (segment.stop <= x.min || segment.start >= x.max) continue;
    const left = clip(segment.start);
    const width = Math.max(unit, clip(segment.stop) - left - unit);
    const top = topOf(row, segment.lane);
    pen.fillStyle = category(segment.colour);
    pen.globalAlpha = height < 6 * unit ? 0.7 : 0.22;
    pen.fillRect(left, top, width, height);
    pen.globalAlpha = 1;
    if (height < 12 * unit) continue;
    pen.fillRect(left, top + height - 1.5 * unit, width, 1.5 * unit);
    const name = brief(segment.name, 40);
    if (pen.measureText(name).width + 8 * unit > width) continue;
    pen.fillStyle = inks().ink;
    pen.fillText(name, left + 4 * unit, top + height / 2);
  }
  pen.textAlign = "right";
  pen.fillStyle = inks().muted;
  for (const { name, at } of ribbon.rows.flatMap(({ named, top }) => named.map(({ name, lane }) => ({ name, at: topOf(top, lane) })))) {
    const room = pen.measureText(name).width + 8 * unit <= box.left;
    if (room && height >= 12 * unit) pen.fillText(name, box.left - 5 * unit, at + height / 2);
  }
  pen.restore();
}

/**
 * Events as ticks at the top with their intervals, and as hairlines behind the curves unless these would be in the way.
 * @param {CanvasRenderingContext2D} pen
 * @param {Moment[]} moments
 * @param {Axis} x
 * @param {Box} box
 * @param {number} unit
 */
export function drawMoments(pen, moments, x, box, unit) {
  pen.save();
  pen.lineWidth = unit;
  const clip = (/** @type {number} */ t) => box.left + box.width * Math.min(1, Math.max(0, x.at(t) || 0));
  for (const { time, interval } of moments) {
    const at = x.at(time);
    if (!(at >= 0 && at <= 1)) continue;
    const left = Math.round(box.left + at * box.width) + 0.5;
    pen.strokeStyle = inks().muted;
    if (interval) {
      pen.globalAlpha = 0.55;
      pen.lineWidth = 3 * unit;
      strokeLine(pen, clip(interval[0]), box.top - 0.5 * unit, clip(interval[1]), box.top - 0.5 * unit, []);
      pen.lineWidth = unit;
    }
    pen.globalAlpha = 0.28;
    if (moments.length <= HAIRLINES) strokeLine(pen, left, box.top, left, box.top + box.height, [2 * unit, 3 * unit]);
    pen.globalAlpha = 1;
    strokeLine(pen, left, box.top - 4 * unit, left, box.top + 3 * unit, []);
  }
  pen.restore();
}

/**
 * Predicted events as ticks at the bottom, with their intervals.
 * @param {CanvasRenderingContext2D} pen
 * @param {import("./types.js").PredictedEvent[]} events
 * @param {Axis} x
 * @param {Box} box
 * @param {number} unit
 */
export function drawPredicted(pen, events, x, box, unit) {
  pen.save();
  pen.strokeStyle = inks().ink;
  const bottom = box.top + box.height;
  const clip = (/** @type {number} */ t) => box.left + box.width * Math.min(1, Math.max(0, x.at(t) || 0));
  for (const { t, low, high } of events) {
    const at = t === null ? NaN : x.at(t);
    if (!(at >= 0 && at <= 1)) continue;
    const left = Math.round(box.left + at * box.width) + 0.5;
    pen.lineWidth = unit;
    strokeLine(pen, left, bottom - 7 * unit, left, bottom, []);
    if (low === null || high === null) continue;
    pen.lineWidth = 3 * unit;
    strokeLine(pen, clip(low), bottom - 3.5 * unit, clip(high), bottom - 3.5 * unit, []);
  }
  pen.restore();
}

/**
 * Levels as dashed lines.
 * @param {CanvasRenderingContext2D} pen
 * @param {LevelLine[]} levels
 * @param {Axis} y
 * @param {Box} box
 * @param {number} unit
 */
export function drawLevels(pen, levels, y, box, unit) {
  pen.save();
  pen.lineWidth = unit;
  for (const { level, at } of levelPlaces(levels, y, box, unit)) {
    pen.strokeStyle = level.colour();
    strokeLine(pen, box.left, at, box.left + box.width, at, [5 * unit, 4 * unit]);
  }
  pen.restore();
}

/**
 * Rungs on the ribbon of their run: a dot where it left a critical point, a ring where it should have.
 * @param {CanvasRenderingContext2D} pen
 * @param {import("./types.js").Rung[][]} ladders of the runs
 * @param {ReturnType<typeof ribbonRows>} ribbon
 * @param {Axis} x
 * @param {Box} box
 * @param {number} unit
 */
export function drawRungs(pen, ladders, ribbon, x, box, unit) {
  pen.save();
  pen.setLineDash([]);
  pen.lineWidth = 1.5 * unit;
  pen.strokeStyle = pen.fillStyle = inks().ink;
  const disc = (/** @type {number|null} */ time, /** @type {number} */ y, /** @type {number} */ radius, /** @type {boolean} */ full) => {
    const at = time === null ? NaN : x.at(time);
    if (!(at >= 0 && at <= 1)) return;
    pen.beginPath();
    pen.arc(box.left + at * box.width, y, radius * unit, 0, 7);
    if (full) pen.fill();
    else pen.stroke();
  };
  ribbon.rows.forEach(({ top, run }) => {
    const y = box.top - (ribbon.height + 5 - top) * unit; // the upper edge, so that names can be read
    for (const { measured_escape, predicted_escape } of ladders[run] ?? []) {
      disc(measured_escape, y, 2.6, true);
      disc(predicted_escape, y, 5, false);
    }
  });
  pen.restore();
}

/**
 * A level with its value, which its name may have said already.
 * @param {import("./types.js").Level} level
 */
export function levelName(level, longest = LONGEST_LEVEL) {
  const whole = clean(level.name);
  const end = Math.floor(longest / 2); // both ends are kept: the last word may be the run
  const name = whole.length > longest ? brief(whole, longest - end) + clean(whole.slice(-end)) : whole;
  const value = short(level.value);
  return `${name} `.includes(` at ${value} `) ? name : `${name} = ${value}`;
}

/**
 * Levels the axis can show, where their lines and where their names go (NaN: no room for the name; the legend has it).
 * @param {LevelLine[]} levels
 * @param {Axis} y
 * @param {Box} box
 * @param {number} unit
 */
export function levelPlaces(levels, y, box, unit) {
  const seen = levels.filter(({ value }) => y.at(value) >= 0 && y.at(value) <= 1);
  const at = seen.map(({ value }) => Math.round(box.top + box.height * (1 - y.at(value))) + 0.5);
  const wanted = at.map((place) => Math.max(box.top, place - 16.5 * unit)); // upper edges of names that stand on their lines
  const labels = spread(wanted, 14 * unit, box.top, box.top + box.height - 16 * unit);
  return seen.map((level, i) => ({ level, at: at[i], label: labels[i] }));
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {number} x0
 * @param {number} y0
 * @param {number} x1
 * @param {number} y1
 * @param {number[]} dash
 */
function strokeLine(pen, x0, y0, x1, y1, dash) {
  pen.setLineDash(dash);
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}
