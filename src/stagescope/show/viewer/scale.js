/**
 * The scale of time of a scene, which slider, ribbons and all plots share: linear, logarithmic, or by change, where equal
 * lengths are equal changes of attention. A window of it can be looked at alone; each window remembers the one before.
 */

import { Axis, timeAxis } from "./traces.js";

/** @typedef {import("./state.js").Settings} Settings */
/** @typedef {"time"|"log"|"change"} ScaleKind */

const NARROW = 40; // px: where a stage would be narrower than this, time follows change
const LEAST = 1e-4; // of the whole scale: windows are not narrower
const LEAST_FRAMES = 2; // frames that a window holds at least, where there are so many

/** @param {ArrayLike<number>} xs ascending @param {ArrayLike<number>} ys @param {number} x between two neighbours in proportion; the ends beyond */
function interpolate(xs, ys, x) {
  let low = 0;
  let high = xs.length - 1;
  if (x <= xs[low]) return ys[low];
  if (x >= xs[high]) return ys[high];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= x) low = middle;
    else high = middle;
  }
  return ys[low] + ((ys[high] - ys[low]) * (x - xs[low])) / (xs[high] - xs[low] || 1);
}

/** The number with the fewest digits between two others. @param {number} low @param {number} high @returns {number} */
function roundest(low, high) {
  if (low <= 0 && high >= 0) return 0;
  if (high < 0) return -roundest(-high, -low);
  for (let power = Math.floor(Math.log10(high)); ; power--) {
    for (const digit of [5, 2, 1]) {
      const step = digit * 10 ** power;
      const found = Math.ceil(low / step - 1e-12) * step;
      if (found <= high) return Number(found.toPrecision(12));
    }
    if (power < -300) return low;
  }
}

/** Time by change: its places are known at the frames, and lie in proportion between them. */
export class ChangeAxis extends Axis {
  /** @param {Float64Array} times @param {Float64Array} places of the frames, increasing from 0 to 1 @param {number} min @param {number} max */
  constructor(times, places, min, max) {
    super(min, max, false);
    this.times = times;
    this.places = places;
    this.from = interpolate(times, places, min);
    this.span = interpolate(times, places, max) - this.from || 1;
  }

  /** @param {number} value */
  at(value) {
    if (!Number.isFinite(value)) return NaN;
    const last = this.times[this.times.length - 1];
    const beyond = Math.max(0, value - last) + Math.min(0, value - this.times[0]); // what lies outside of the run is off the axis
    return (interpolate(this.times, this.places, value) + beyond / (last - this.times[0]) - this.from) / this.span;
  }

  /** @param {number} share */
  value(share) {
    return interpolate(this.places, this.times, this.from + share * this.span);
  }

  /** Round times about equally far apart on the screen. @param {number} length pixels @param {number} gap pixels */
  ticks(length, gap) {
    const count = Math.max(1, Math.floor(length / gap));
    const near = (/** @type {number} */ at) => this.value(Math.min(1, Math.max(0, at / count)));
    const found = Array.from({ length: count + 1 }, (_, i) => roundest(near(i - 0.2), near(i + 0.2)));
    return [...new Set(found)].filter((time) => this.at(time) >= -1e-9 && this.at(time) <= 1 + 1e-9);
  }
}

/**
 * Change over the frames of all runs: the mean of the places the runs have; null if none is known.
 * @param {Float64Array} times of the scene
 * @param {{time: Float64Array, places: Float64Array|null}[]} runs
 * @returns {Float64Array|null}
 */
export function placesOf(times, runs) {
  const known = runs.filter(({ places }) => places);
  if (!known.length || times.length < 2) return null;
  const last = times.length - 1;
  const span = times[last] - times[0];
  const mean = times.map((t) => {
    const sum = known.reduce((all, { time, places }) => all + interpolate(time, /** @type {Float64Array} */ (places), t), 0);
    return sum / known.length + (1e-9 * (t - times[0])) / span; // increases also where no run has frames any more
  });
  return mean.map((place) => (place - mean[0]) / (mean[last] - mean[0]));
}

export class Scale {
  /**
   * @param {Float64Array} times
   * @param {Float64Array|null} places of the frames by change
   * @param {string} of whose change it is
   * @param {boolean} log whether time starts on a logarithmic axis
   * @param {[number, number][]} stages from when to when
   * @param {Settings} settings
   */
  constructor(times, places, of, log, stages, settings) {
    this.times = times;
    this.places = places;
    this.of = of;
    this.settings = settings;
    /** The times that are seen; null: all. @type {[number, number]|null} */
    this.window = null;
    /** Windows before this one. @type {([number, number]|null)[]} */
    this.past = [];
    /** @type {(() => void)[]} */
    this.listeners = [];
    this.suits = this.suited(log ? "log" : "time", stages);
    this.axis = this.made(this.window);
    settings.on((name) => name === "axis" && this.changed());
  }

  /** The scale that suits the runs: by change where a stage would be too narrow otherwise, and by change it is not. @param {ScaleKind} usual @param {[number, number][]} stages @returns {ScaleKind} */
  suited(usual, stages) {
    const lasting = stages.filter(([start, stop]) => stop > start);
    if (!this.places || !lasting.length) return usual;
    const room = Math.min(innerWidth, 1500) - (innerWidth > 640 ? 330 : 60); // about what the slider has
    const narrowest = (/** @type {ScaleKind} */ kind) => {
      const axis = this.whole(kind);
      const at = (/** @type {number} */ time) => Math.min(1, Math.max(0, axis.at(time) || 0));
      return room * Math.min(...lasting.map(([start, stop]) => at(stop) - at(start)));
    };
    return narrowest(usual) < NARROW && narrowest("change") > narrowest(usual) ? "change" : usual;
  }

  /** Kinds there are. @returns {ScaleKind[]} */
  get kinds() {
    return this.places ? ["time", "log", "change"] : ["time", "log"];
  }

  /** The kind the reader chose, else the one that suits. @returns {ScaleKind} */
  get kind() {
    const chosen = /** @type {ScaleKind} */ (this.settings.get("axis"));
    return this.kinds.includes(chosen) ? chosen : this.suits;
  }

  /** @param {ScaleKind} kind -> the axis over all times @returns {Axis} */
  whole(kind) {
    const { times, places } = this;
    if (kind === "change" && places) return new ChangeAxis(times, places, times[0], times[times.length - 1]);
    return timeAxis(times, kind === "log");
  }

  /** @param {[number, number]|null} window @returns {Axis} */
  made(window) {
    const whole = this.whole(this.kind);
    if (!window) return whole;
    const [min, max] = [Math.max(whole.min, window[0]), Math.min(whole.max, window[1])];
    if (!(max > min)) return whole;
    return whole instanceof ChangeAxis ? new ChangeAxis(whole.times, whole.places, min, max) : new Axis(min, max, whole.log);
  }

  /** Where a time lies between the ends of the axis, 0..1. @param {number} time */
  share(time) {
    return Math.min(1, Math.max(0, this.axis.at(time) || 0));
  }

  changed() {
    this.axis = this.made(this.window);
    for (const listener of this.listeners) listener();
  }

  /** @param {() => void} listener called when kind or window changed */
  on(listener) {
    this.listeners.push(listener);
  }

  /**
   * Shows a stretch of time alone; null shows all. `kept` leaves the present window where Escape comes back to it.
   * @param {[number, number]|null} span
   * @param {boolean} [kept]
   */
  zoom(span, kept = true) {
    const to = span && this.fitted(span);
    if (kept && String(to) !== String(this.window)) this.past.push(this.window);
    if (!to) this.past = [];
    this.window = to;
    this.changed();
  }

  /** A stretch inside the run, not too short; null where it is all of it. @param {[number, number]} span @returns {[number, number]|null} */
  fitted(span) {
    const whole = this.whole(this.kind);
    let [low, high] = [Math.min(...span), Math.max(...span)].map((t) => Math.min(1, Math.max(0, whole.at(t) || 0)));
    const apart = Math.min(1, Math.max(LEAST, high - low));
    low = Math.min(Math.max(0, (low + high - apart) / 2), 1 - apart);
    high = low + apart;
    /** @type {[number, number]} */
    const found = [whole.value(low), whole.value(high)];
    const inside = this.times.filter((t) => t >= found[0] && t <= found[1]).length;
    if (inside < LEAST_FRAMES && this.window) return this.window;
    return low <= 1e-9 && high >= 1 - 1e-9 ? null : found;
  }

  /** Goes back to the window before; false if there is none. */
  back() {
    const before = this.past.pop();
    if (before === undefined && !this.window) return false;
    this.window = before ?? null;
    this.changed();
    return true;
  }

  /** Closer (below 1) or farther (above) around a time, which stays where it is on the screen. @param {number} factor @param {number} time @param {boolean} [kept] */
  by(factor, time, kept = true) {
    const at = this.share(time);
    const whole = this.whole(this.kind);
    const ends = [at - at * factor, at + (1 - at) * factor].map((share) => whole.at(this.axis.value(0)) + share * this.part(whole));
    const [low, high] = ends.map((share) => Math.min(1, Math.max(0, share)));
    this.zoom([whole.value(low), whole.value(high)], kept);
  }

  /** Puts two times at two shares of the width, as two fingers do. @param {number[]} times @param {number[]} shares @param {boolean} kept */
  hold(times, shares, kept) {
    const whole = this.whole(this.kind);
    const [from, to] = times.map((time) => whole.at(time) || 0);
    const part = Math.min(1, (to - from) / (shares[1] - shares[0]));
    if (!(part > 0)) return; // the fingers lie upon each other, or have changed sides
    const low = Math.min(1 - part, Math.max(0, from - shares[0] * part));
    this.zoom([whole.value(low), whole.value(low + part)], kept);
  }

  /** The share of the whole scale that is seen. @param {Axis} whole */
  part(whole) {
    return whole.at(this.axis.max) - whole.at(this.axis.min);
  }

  /** Moves the window so that a time is inside of it. @param {number} time */
  follow(time) {
    if (!this.window || (time >= this.window[0] && time <= this.window[1])) return;
    const whole = this.whole(this.kind);
    const part = this.part(whole);
    const at = Math.min(1, Math.max(0, whole.at(time) || 0));
    const low = Math.min(1 - part, Math.max(0, time < this.window[0] ? at - 0.1 * part : at - 0.9 * part));
    this.window = [whole.value(low), whole.value(low + part)];
    this.changed();
  }
}
