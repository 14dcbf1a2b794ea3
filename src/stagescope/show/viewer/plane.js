/**
 * The plane of a run's points: fixed axes of one scale over all frames, points, the trail of the last frames, and labels.
 *
 * A label takes the first free place around its point, the one it had before if it can; where none is free it is left out, and
 * the pointer still finds it.
 */

import { category, inks } from "./colours.js";
import { brief, short } from "./dom.js";
import { FONT, markPath, round, textShape, turnedShape } from "./shapes.js";
import { Axis, axisTicks } from "./traces.js";

/** @typedef {import("./shapes.js").Shape} Shape */
/** @typedef {[left: number, top: number, right: number, bottom: number]} Area */

const BANDS = 4; // of the trail, by age
const BAND = 6; // frames each
const MANY = 60; // points from which on a band is one straight line
const RADIUS = 3.5;
const MARGIN = { left: 46, right: 12, top: 8, bottom: 34 };
const LABEL_SIZE = 11;
const MOST_LABELS = 60; // that are tried; the pointer finds the others
const DISC = 1; // the kind of mark a point is
const TICK_GAP = 80; // px

/** Places of a label around its point, best first: shift in widths of the label, then in px. */
const SPOTS = [
  [0, 7, 3.5],
  [-1, -7, 3.5],
  [-0.5, 0, -8],
  [-0.5, 0, 15],
  [0, 5, -6],
  [0, 5, 13],
  [-1, -5, -6],
  [-1, -5, 13],
];

/**
 * A square that holds every finite point of every frame, with a little air.
 * @param {Float64Array} values
 */
function squareAround(values) {
  const low = [Infinity, Infinity];
  const high = [-Infinity, -Infinity];
  for (let i = 0; i < values.length; i++) {
    if (!Number.isFinite(values[i])) continue;
    low[i & 1] = Math.min(low[i & 1], values[i]);
    high[i & 1] = Math.max(high[i & 1], values[i]);
  }
  const half = 0.54 * Math.max(high[0] - low[0], high[1] - low[1]);
  const size = half > 0 && Number.isFinite(half) ? half : 1;
  const middle = [0, 1].map((axis) => (Number.isFinite(low[axis] + high[axis]) ? (low[axis] + high[axis]) / 2 : 0));
  return { left: middle[0] - size, bottom: middle[1] - size, side: 2 * size };
}

/** @param {Area} one @param {Area} other */
function overlap(one, other) {
  return one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3];
}

export class Plane {
  /** @param {string[]} labels @param {Float64Array} values (frames, n, 2) @param {((() => string)|null)[]} colours of points that have their own */
  constructor(labels, values, colours) {
    this.labels = labels;
    /** Of tokens, which have their own. */
    this.colours = colours;
    this.values = values;
    this.box = squareAround(values);
    this.width = 0;
    /** @type {Map<number, number>} the spot each label had last */
    this.spots = new Map();
    const pen = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
    pen.font = `${LABEL_SIZE}px ${FONT}`;
    /** Labels as drawn, with their widths. @type {[string, number][]} */
    this.texts = labels.map((label) => [brief(label, 18), pen.measureText(brief(label, 18)).width]);
  }

  /** @param {number} width px; the plot is a square, so it gives the height too */
  resize(width) {
    this.width = width;
    this.spots.clear();
  }

  /** The side of the square inside the margins. */
  get side() {
    return Math.max(1, this.width - MARGIN.left - MARGIN.right);
  }

  get height() {
    return MARGIN.top + this.side + MARGIN.bottom;
  }

  /** @param {number} place @param {number} i @returns {[number, number]} values of a point */
  value(place, i) {
    const from = 2 * (place * this.labels.length + i);
    return [this.values[from], this.values[from + 1]];
  }

  /** @param {[number, number]} value @returns {[number, number]} px */
  onPage([x, y]) {
    const { left, bottom, side } = this.box;
    return [MARGIN.left + ((x - left) / side) * this.side, MARGIN.top + (1 - (y - bottom) / side) * this.side];
  }

  /** @param {number} place @param {number} i @returns {[number, number]} px; NaN where the point is not finite */
  at(place, i) {
    return this.onPage(this.value(place, i));
  }

  /**
   * The point nearest to a place on the page and within reach, or null.
   * @param {number} place
   * @param {number} x
   * @param {number} y
   * @param {number} reach
   */
  near(place, x, y, reach) {
    /** @type {number|null} */
    let best = null;
    let least = reach;
    this.labels.forEach((_, i) => {
      const [px, py] = this.at(place, i);
      const far = Math.hypot(px - x, py - y);
      if (far < least) [best, least] = [i, far];
    });
    return best;
  }

  /**
   * Everything at a frame, as shapes.
   * @param {number} place
   * @param {number|null} chosen
   * @returns {Shape[]}
   */
  shapes(place, chosen) {
    const points =
      place < 0
        ? []
        : this.labels.map((_, i) => ({ i, at: this.at(place, i) })).filter(({ at }) => Number.isFinite(at[0] + at[1]));
    const disc = (/** @type {{i: number, at: [number, number]}} */ { i, at: [x, y] }) =>
      markPath(DISC, round(x), round(y), i === chosen ? RADIUS + 2 : RADIUS);
    const plain = points.filter(({ i }) => !this.colours[i]).map(disc).join("");
    const own = points.filter(({ i }) => this.colours[i]).map((point) => /** @type {Shape} */ (["path", { d: disc(point), fill: this.colour(point.i), stroke: inks().paper }]));
    return [...this.axes(), ...this.trail(place), ["path", { d: plain, fill: category(0), stroke: inks().paper }], ...own, ...this.names(points)];
  }

  /** @returns {Shape[]} */
  axes() {
    const { left, bottom, side } = this.box;
    const ink = inks();
    const small = { fill: ink.muted, "font-size": 10 };
    const [right, foot] = [MARGIN.left + this.side, MARGIN.top + this.side];
    const colour = (/** @type {number} */ value) => (Math.abs(value) < 1e-9 * side ? ink.muted : ink.line);
    /** @type {Shape[]} */
    const shapes = [];
    for (const value of axisTicks(new Axis(left, left + side, false), this.side, TICK_GAP)) {
      const x = Math.round(this.onPage([value, 0])[0]) + 0.5;
      shapes.push(["line", { x1: x, x2: x, y1: MARGIN.top, y2: foot, stroke: colour(value), "stroke-width": 1 }]);
      shapes.push(textShape(x, foot + 14, short(value, 3), { ...small, "text-anchor": "middle" }));
    }
    for (const value of axisTicks(new Axis(bottom, bottom + side, false), this.side, TICK_GAP)) {
      const y = Math.round(this.onPage([0, value])[1]) + 0.5;
      shapes.push(["line", { x1: MARGIN.left, x2: right, y1: y, y2: y, stroke: colour(value), "stroke-width": 1 }]);
      shapes.push(textShape(MARGIN.left - 6, y + 3.5, short(value, 3), { ...small, "text-anchor": "end" }));
    }
    const middle = { ...small, "text-anchor": "middle" };
    shapes.push(textShape(MARGIN.left + this.side / 2, foot + 29, "first component", middle));
    shapes.push(turnedShape(11, MARGIN.top + this.side / 2, "second component", middle));
    return shapes;
  }

  /** @param {number} i -> the colour of a point */
  colour(i) {
    return this.colours[i]?.() ?? category(0);
  }

  /** The way of the last frames in bands, the older the fainter. @param {number} place @returns {Shape[]} */
  trail(place) {
    const kinds = [...new Set(this.labels.map((_, i) => this.colour(i)))];
    return Array.from({ length: BANDS }, (_, band) => band).flatMap((band) => {
      const from = Math.max(0, place - (band + 1) * BAND);
      const to = Math.max(0, place - band * BAND);
      return kinds.map((stroke) => {
        const d = from < to ? this.labels.map((_, i) => (this.colour(i) === stroke ? this.line(from, to, i) : "")).join("") : "";
        return /** @type {Shape} */ (["path", { d, fill: "none", stroke, opacity: 0.55 * (1 - band / BANDS), "stroke-width": 1.2 }]);
      });
    });
  }

  /**
   * The way of a point over some frames; empty if it was not always finite.
   * @param {number} from
   * @param {number} to
   * @param {number} i
   */
  line(from, to, i) {
    let d = "";
    const step = this.labels.length > MANY ? BAND : 1;
    for (let place = to; place >= from; place -= step) {
      const [x, y] = this.at(place, i);
      if (!Number.isFinite(x + y)) return "";
      d += `${d ? "L" : "M"}${round(x)} ${round(y)}`;
    }
    return d;
  }

  /**
   * Labels that fit. Those shown before come first, then those at the rim: there they have room and tell most.
   * @param {{i: number, at: [number, number]}[]} points
   * @returns {Shape[]}
   */
  names(points) {
    const middle = [0, 1].map((axis) => points.reduce((sum, { at }) => sum + at[axis], 0) / points.length);
    const far = (/** @type {{at: [number, number]}} */ { at }) => Math.hypot(at[0] - middle[0], at[1] - middle[1]);
    const taken = points.map(({ at: [x, y] }) => /** @type {Area} */ ([x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS]));
    const before = this.spots;
    this.spots = new Map();
    const order = [...points].sort((a, b) => Number(before.has(b.i)) - Number(before.has(a.i)) || far(b) - far(a) || a.i - b.i);
    const ink = inks();
    /** @type {Shape[]} */
    const shapes = [];
    for (const { i, at } of order.slice(0, MOST_LABELS)) {
      const [text, width] = this.texts[i];
      const found = this.freeSpot(at, width, taken, before.get(i));
      if (!found) continue;
      taken.push(found.area);
      this.spots.set(i, found.spot);
      const [x, y, right, bottom] = found.area;
      shapes.push(["rect", { x: x - 1, y: y + 1, width: right - x + 2, height: bottom - y - 1, fill: ink.paper, opacity: 0.7 }]);
      shapes.push(textShape(x, bottom - 3, text));
    }
    return shapes;
  }

  /**
   * @param {[number, number]} at
   * @param {number} width of the label
   * @param {Area[]} taken
   * @param {number} [before] the spot it had
   */
  freeSpot(at, width, taken, before) {
    for (const spot of [...(before === undefined ? [] : [before]), ...SPOTS.keys()]) {
      const [share, dx, dy] = SPOTS[spot];
      const [x, y] = [at[0] + share * width + dx, at[1] + dy];
      /** @type {Area} */
      const area = [x, y - 9, x + width, y + 3];
      if (x >= 0 && x + width <= this.width && !taken.some((other) => overlap(area, other))) return { spot, area };
    }
    return null;
  }
}
