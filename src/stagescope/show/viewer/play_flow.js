/** From a law to what is drawn: the flow at some tolerance, its curves, events, and how far two tolerances differ. */

import { Rkc } from "./play_rkc.js";
import { firstCrossing, multiply, norm, singularValues, softmax, timesTurned, turnedTimes, within } from "./play_tools.js";

/** @typedef {import("./play_types.js").Law} Law */
/** @typedef {import("./play_types.js").PlayEvent} PlayEvent */
/** @typedef {{time: Float64Array, loss: Float64Array, curves: Float64Array[], states: Float64Array[], way: Float64Array,
 *   events: PlayEvent[], tolerance: number, evaluations: number}} Played
 *   `curves` as `observe` gives them; `way`: how far all curves have gone, 0 to 1, the axis "by change". */

export const TOOLS = { singularValues, firstCrossing, norm, within, softmax, multiply, turnedTimes, timesTurned };
export const ROUGH = 1e-3; // tolerance while a slider moves
export const FINE = 1e-5; // tolerance once it rests
const ORDER_GAIN = (ROUGH / FINE) ** (2 / 3); // the error of a method of order 2 goes as the tolerance to the power 2/3
const STRIDE = 0.02; // change of a moving curve between two frames
const WAY_DECADES = 5; // below the largest value of a curve on a logarithmic axis, that count as change
const MOST_PARTS = 6; // into which a step is cut

/**
 * @param {Law} law
 * @param {number} tolerance
 * @returns {Played}
 */
export function playFlow(law, tolerance) {
  const solver = new Rkc(law.velocity, law.start, law.until, tolerance);
  const time = [0];
  const loss = [solver.loss];
  /** @type {Float64Array[]} */
  const states = [Float64Array.from(law.start)];
  const rows = [law.observe(law.start)];
  const scratch = new Float64Array(law.start.length);
  const keep = (/** @type {number} */ t, /** @type {Float64Array} */ state, /** @type {number} */ value, /** @type {number[]} */ row) => {
    time.push(t);
    states.push(state);
    loss.push(value);
    rows.push(row);
  };
  solver.run((step) => {
    const end = law.observe(step.theta1);
    const far = law.moving.reduce((most, i) => Math.max(most, Math.abs(end[i] - rows[rows.length - 1][i])), 0);
    const parts = Math.min(MOST_PARTS, Math.ceil(far / STRIDE));
    for (let part = 1; part < parts; part++) {
      const state = between(step, part / parts);
      keep(step.from + (part / parts) * (step.to - step.from), state, law.velocity(state, scratch), law.observe(state));
    }
    keep(step.to, Float64Array.from(step.theta1), step.loss1, end);
  });
  const curves = rows[0].map((_, i) => Float64Array.from(rows, (row) => row[i]));
  const found = { time: Float64Array.from(time), loss: Float64Array.from(loss), curves, states };
  return { ...found, way: wayOf(law.panels, found.loss, curves), events: law.events(found.time, curves, found.loss), tolerance, evaluations: solver.evaluations };
}

/**
 * How far all curves have gone, from 0 to 1: every panel counts the same, in the units of its axis.
 * @param {import("./play_types.js").PlayPanel[]} panels
 * @param {Float64Array} loss
 * @param {Float64Array[]} curves
 */
function wayOf(panels, loss, curves) {
  const way = new Float64Array(loss.length);
  let first = 0;
  panels.forEach((panel, place) => {
    const own = place ? curves.slice(first, (first += panel.curves.length)) : [loss];
    const path = new Float64Array(loss.length);
    for (const curve of own) {
      const floor = curve.reduce((most, x) => Math.max(most, Math.abs(x)), 0) / 10 ** WAY_DECADES || 1;
      const unit = panel.log ? (/** @type {number} */ x) => Math.log(Math.max(x, floor)) : (/** @type {number} */ x) => x;
      for (let i = 1; i < path.length; i++) path[i] += Math.abs(unit(curve[i]) - unit(curve[i - 1]));
    }
    for (let i = 1; i < path.length; i++) path[i] += path[i - 1];
    const whole = path[path.length - 1] || 1;
    for (let i = 1; i < path.length; i++) way[i] += path[i] / whole / panels.length;
  });
  return way;
}

/** The state inside a step: the cubic through both ends with their velocities. @param {import("./play_rkc.js").Step} step @param {number} u */
function between({ from, to, theta, slope, theta1, slope1 }, u) {
  const size = to - from;
  const [a, b] = [(1 + 2 * u) * (1 - u) ** 2, u * (1 - u) ** 2 * size];
  const [c, d] = [u * u * (3 - 2 * u), u * u * (u - 1) * size];
  return theta.map((x, i) => a * x + b * slope[i] + c * theta1[i] + d * slope1[i]);
}

/**
 * How far a rough and a fine flow differ: the largest relative difference of event times, and of the loss at the end. `fine` is
 * what is left in the fine one.
 * @param {Played} rough
 * @param {Played} fine
 */
export function differenceOf(rough, fine) {
  let events = 0;
  let missing = 0;
  fine.events.forEach(({ time }, i) => {
    const other = rough.events[i].time;
    if ((time === null) !== (other === null)) missing++;
    else if (time && other) events = Math.max(events, Math.abs(other / time - 1));
  });
  const last = (/** @type {Played} */ { loss }) => loss[loss.length - 1];
  const end = Math.abs(last(rough) - last(fine));
  return { events, missing, loss: end, fineEvents: events / ORDER_GAIN, fineLoss: end / ORDER_GAIN };
}

/**
 * The values of a curve at a time.
 * @param {Float64Array} time
 * @param {number} at
 * @returns {number} the last frame that is not after it
 */
export function frameAt(time, at) {
  let low = 0;
  let high = time.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (time[middle] <= at) low = middle;
    else high = middle - 1;
  }
  return low;
}
