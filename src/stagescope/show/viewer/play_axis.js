/** The axis of time of a playground: by change, linear, or logarithmic. */

import { Axis, axisTicks } from "./traces.js";

/** @typedef {"change"|"time"|"log"} TimeScale */
/** @typedef {{at: (t: number) => number, value: (share: number) => number, ticks: (length: number, gap: number) => number[],
 *   says: string}} PlayAxis */

const STEADY = 0.1; // share of the axis "by change" that goes evenly with time: where nothing changes time still has a place

/**
 * @param {TimeScale} kind
 * @param {Float64Array} time
 * @param {Float64Array} way
 * @returns {PlayAxis}
 */
export function playAxis(kind, time, way) {
  const last = time[time.length - 1];
  if (kind === "change") return byChange(time, way);
  const axis = kind === "log" ? new Axis(Math.max(time[1] ?? last / 1e3, last / 1e4), last, true) : new Axis(0, last, false);
  return {
    at: (t) => Math.max(0, axis.at(t) || 0),
    value: (share) => axis.value(share),
    ticks: (length, gap) => axisTicks(axis, length, gap),
    says: kind === "log" ? "time t, logarithmic" : "time t",
  };
}

/** Equal lengths for equal change of the curves. @param {Float64Array} time @param {Float64Array} way @returns {PlayAxis} */
function byChange(time, way) {
  const end = time.length - 1;
  const whole = way[end] || 1;
  const shares = time.map((t, i) => STEADY * (t / time[end]) + (1 - STEADY) * (way[end] ? way[i] / whole : t / time[end]));
  const at = (/** @type {number} */ t) => valueBetween(time, shares, t);
  const value = (/** @type {number} */ share) => valueBetween(shares, time, share);
  return { at, value, ticks: (length, gap) => roundTimes(at, value, Math.max(2, Math.floor(length / gap))), says: "time t, by change" };
}

/** A part of an axis, as wide as the whole. @param {PlayAxis} whole @param {[number, number]} window times @returns {PlayAxis} */
export function playWindow(whole, window) {
  const [low, high] = window.map((t) => whole.at(t));
  const at = (/** @type {number} */ t) => (whole.at(t) - low) / (high - low);
  const value = (/** @type {number} */ share) => whole.value(low + share * (high - low));
  return { at, value, ticks: (length, gap) => roundTimes(at, value, Math.max(2, Math.floor(length / gap)), 0), says: whole.says };
}

/** Round times at about equal distances. @param {(t: number) => number} at @param {(share: number) => number} value @param {number} count @param {number} [first] place at which to begin */
function roundTimes(at, value, count, first = 1) {
  const end = value(1);
  const found = first ? [0] : [];
  for (let i = first; i <= count; i++) {
    const rounded = [1, 2, 3, 4, 5].map((digits) => Number(value(i / count).toPrecision(digits)));
    const tick = rounded.find((t) => t <= end && at(t) >= 0 && Math.abs(at(t) - i / count) < 0.2 / count) ?? value(i / count);
    if (!found.length || at(tick) - at(found[found.length - 1]) > 0.6 / count) found.push(tick);
  }
  return found;
}

/** @param {Float64Array} xs ascending @param {Float64Array} ys @param {number} x */
function valueBetween(xs, ys, x) {
  let low = 0;
  let high = xs.length - 1;
  if (x <= xs[0]) return ys[0];
  if (x >= xs[high]) return ys[high];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= x) low = middle;
    else high = middle;
  }
  const span = xs[high] - xs[low];
  return span > 0 ? ys[low] + ((x - xs[low]) / span) * (ys[high] - ys[low]) : ys[high];
}
