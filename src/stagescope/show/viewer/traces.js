/** Axes, ticks and lines in pixels, for the plots on the page: no drawing happens here. */

/** One axis: where a value lies between its ends, as a share of the length. */
export class Axis {
  /** @param {number} min @param {number} max @param {boolean} log */
  constructor(min, max, log) {
    this.min = min;
    this.max = max;
    this.log = log;
    this.from = log ? Math.log10(min) : min;
    this.span = (log ? Math.log10(max) : max) - this.from || 1;
  }

  /** @param {number} value -> share of the length; NaN where the axis has no place for it */
  at(value) {
    if (!Number.isFinite(value) || (this.log && value <= 0)) return NaN;
    return ((this.log ? Math.log10(value) : value) - this.from) / this.span;
  }

  /** Ticks of an axis that has its own. @param {number} length pixels @param {number} gap pixels @returns {number[]|null} */
  ticks(length, gap) {
    void [length, gap];
    return null;
  }

  /** @param {number} share -> value */
  value(share) {
    const at = this.from + share * this.span;
    return this.log ? 10 ** at : at;
  }
}

/**
 * Least and largest number an axis can show; null if there is none.
 * @param {Iterable<ArrayLike<number>>} arrays
 * @param {boolean} log
 * @returns {[number, number]|null}
 */
export function extent(arrays, log) {
  let min = Infinity;
  let max = -Infinity;
  for (const array of arrays) {
    for (let i = 0; i < array.length; i++) {
      const value = array[i];
      if (!Number.isFinite(value) || (log && value <= 0)) continue;
      if (value < min) min = value;
      if (value > max) max = value;
    }
  }
  return min <= max ? [min, max] : null;
}

const FARTHEST = Number.MAX_VALUE / 2; // ends of an axis: the distance between them is still a number

/**
 * The axis of values: some air at its ends, from zero if the values come near it.
 * @param {[number, number]|null} ends
 * @param {boolean} log
 */
export function valueAxis(ends, log) {
  if (!ends) return log ? new Axis(0.1, 1, true) : new Axis(0, 1, false);
  const [min, max] = ends;
  if (log) {
    const air = Math.max((max / min) ** 0.05, 1.05);
    return new Axis(min / air, max * air, true);
  }
  const air = (max - min) * 0.05 || Math.abs(max) * 0.1 || 1;
  const low = min >= 0 && min < 0.4 * max ? 0 : min - air;
  const high = max <= 0 && max > 0.4 * min ? 0 : max + air;
  return new Axis(Math.max(low, -FARTHEST), Math.min(high, FARTHEST), false);
}

/**
 * The axis of time. On a logarithmic one the first frame after zero is the left end: zero has no place on it.
 * @param {Float64Array} times
 * @param {boolean} log
 */
export function timeAxis(times, log) {
  const last = times[times.length - 1];
  const first = log ? times.find((t) => t > 0) : times[0];
  if (first === undefined || !(last > first)) return new Axis((first ?? 0) - 0.5, (first ?? 0) + 0.5, false);
  return new Axis(first, last, log);
}

/**
 * Round numbers along an axis, about one every `gap` pixels; on a logarithmic axis powers of ten, and their 2 and 5 if they fit.
 * @param {Axis} axis
 * @param {number} length pixels
 * @param {number} gap pixels
 */
export function axisTicks(axis, length, gap) {
  const own = axis.ticks(length, gap);
  if (own) return own;
  const room = Math.max(1, length / gap);
  if (axis.log && axis.span > 0.7) return powers(axis, room);
  const raw = (axis.max - axis.min) / room;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5].find((m) => m * power >= raw) ?? 10);
  const first = Math.ceil(axis.min / step - 1e-9);
  const last = Math.floor(axis.max / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** @param {Axis} axis @param {number} room how many ticks fit */
function powers(axis, room) {
  const decades = axis.span;
  const skip = Math.max(1, Math.ceil(decades / room));
  const leading = decades * 3 <= room * 1.6 ? [1, 2, 5] : [1]; // those of one decade stand closer than equal steps would
  const marks = [];
  for (let power = Math.floor(axis.from); power <= Math.log10(axis.max); power++) {
    if (power % skip) continue;
    for (const digit of leading) marks.push(Number(`${digit}e${power}`));
  }
  return marks.filter((mark) => axis.at(mark) >= -1e-9 && axis.at(mark) <= 1 + 1e-9);
}

/**
 * A curve as polylines in pixels. Numbers the axis cannot show leave a gap. Where many frames share a column of pixels, the
 * first, the lowest, the highest and the last are kept: the picture is the same and 10^5 frames are drawn as fast as 10^3.
 * @param {Float64Array} xs pixels across, one a frame, ascending; NaN: before the axis begins
 * @param {ArrayLike<number>} values
 * @param {Axis} axis
 * @param {number} top pixels
 * @param {number} height pixels
 * @returns {number[][]} each [x0, y0, x1, y1, ...]
 */
export function polylines(xs, values, axis, top, height) {
  /** @type {number[][]} */
  const lines = [];
  /** @type {number[]|null} */
  let line = null;
  let column = NaN;
  let low = 0;
  let high = 0;
  let last = 0;
  const y = (/** @type {number} */ i) => top + height * (1 - axis.at(values[i]));
  const flush = () => {
    if (!line) return;
    for (const i of [Math.min(low, high), Math.max(low, high), last]) {
      const size = line.length;
      if (line[size - 2] !== xs[i] || line[size - 1] !== y(i)) line.push(xs[i], y(i));
    }
  };
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (!Number.isFinite(value) || (axis.log && value <= 0) || Number.isNaN(xs[i])) {
      flush();
      line = null;
      continue;
    }
    if (line && Math.floor(xs[i]) === column) {
      if (value < values[low]) low = i;
      if (value > values[high]) high = i;
      last = i;
      continue;
    }
    flush();
    if (!line) lines.push((line = []));
    line.push(xs[i], y(i));
    column = Math.floor(xs[i]);
    low = high = last = i;
  }
  flush();
  return lines;
}

/**
 * Pixels down for labels of lines so that none covers another: pushed apart, kept inside. Those that find no room get NaN.
 * @param {number[]} wanted pixels
 * @param {number} height of a label
 * @param {number} top
 * @param {number} bottom
 */
export function spread(wanted, height, top, bottom) {
  const order = wanted.map((_, i) => i).filter((i) => wanted[i] >= top - height && wanted[i] <= bottom + height);
  order.sort((a, b) => wanted[a] - wanted[b]);
  const room = Math.max(1, Math.floor((bottom - top) / height));
  while (order.length > room) order.splice(closest(order.map((i) => wanted[i])), 1);
  const placed = new Array(wanted.length).fill(NaN);
  let floor = top;
  for (const i of order) floor = (placed[i] = Math.max(floor, wanted[i])) + height;
  let ceiling = bottom;
  for (const i of order.reverse()) ceiling = (placed[i] = Math.min(ceiling, placed[i])) - height;
  return placed;
}

/** @param {number[]} sorted place of the number that is nearest to the one before it */
function closest(sorted) {
  let best = 1;
  for (let i = 2; i < sorted.length; i++) if (sorted[i] - sorted[i - 1] < sorted[best] - sorted[best - 1]) best = i;
  return best;
}
