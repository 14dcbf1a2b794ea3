/**
 * Which part of a diagram a cell covers. Boxes lie between neighbouring values of the two axes, halved where a refinement put
 * cells inside; each smallest box is cut in four, and a quarter belongs to the cell at its corner. A corner of the grid where
 * no cell exists leaves its quarter blank. `reporting/areas.py` says why and does the same for figures.
 */

/** @typedef {import("./types.js").SweepAxis} SweepAxis */
/** @typedef {[x: number, y: number]} Pair values of a cell on both axes; of a category its number */
/** @typedef {{left: number, right: number, bottom: number, top: number}} Rect in places */
/** @typedef {[low: number, high: number]} Side */

const ALONE = 0.5;
const ALONE_LOG = 0.15;
const FAR = 8;
const CLOSE = 0.05; // a gap of so small a share of the axis,
const UNEVEN = 3; // beside one so many times as large, has values drawn at equal distances instead

/** Where the values of an axis lie on paper. */
export class Ruler {
  /** @param {SweepAxis} axis */
  constructor({ name, kind, values }) {
    this.name = name;
    this.kind = kind;
    this.named = kind === "categorical";
    this.names = values.map(String);
    /** Values of the grid. @type {number[]} */
    this.values = this.named ? values.map((_, i) => i) : values.map(Number);
    this.log = this.isLog();
    /** At equal distances: values so uneven that some cells would be slivers. */
    this.ordinal = this.isOrdinal();
    /** Where the outermost cells end, half a step beyond the first and the last value. @type {Side} */
    this.reach = this.ends();
  }

  isLog() {
    const { kind, values } = this;
    if (kind === "log" || kind === "log integer") return true;
    if (this.named || values.length < 3 || values[0] <= 0 || values[values.length - 1] < FAR * values[0]) return false;
    return uneven(values.map(Math.log)) < uneven(values);
  }

  isOrdinal() {
    const { values } = this;
    if (this.named || this.log || values.length < 3) return false;
    const nearest = Math.min(...values.slice(1).map((value, i) => value - values[i]));
    return nearest < CLOSE * (values[values.length - 1] - values[0]) && uneven(values) > UNEVEN;
  }

  /** @returns {Side} */
  ends() {
    const places = this.values.map((value) => this.place(value));
    const last = places.length - 1;
    if (this.named || !last) {
      const size = this.named || this.log || this.ordinal ? 1 : 0.2 * Math.abs(places[0]) || 1;
      const half = (this.log ? ALONE_LOG : ALONE) * size;
      return [places[0] - half, places[last] + half];
    }
    return [places[0] - (places[1] - places[0]) / 2, places[last] + (places[last] - places[last - 1]) / 2];
  }

  /** @param {number} value */
  place(value) {
    if (this.ordinal) {
      const { values } = this;
      let at = 0;
      while (at < values.length - 2 && values[at + 1] <= value) at++;
      return at + (value - values[at]) / (values[at + 1] - values[at]);
    }
    return this.log ? Math.log10(value) : value;
  }

  /** Half-way between two values as a refinement finds it; null if nothing is. @param {Side} side */
  middle([low, high]) {
    if (this.named || low === high) return null;
    let found = this.kind.startsWith("log") ? Math.sqrt(low) * Math.sqrt(high) : low + (high - low) / 2;
    if (this.kind.endsWith("integer")) found = halfToEven(found);
    else if (low < cleaned(found) && cleaned(found) < high) found = cleaned(found);
    return low < found && found < high ? found : null;
  }

  /** @returns {Side[]} */
  sides() {
    if (this.named || this.values.length < 2) return this.values.map((value) => [value, value]);
    return this.values.slice(1).map((value, i) => [this.values[i], value]);
  }
}

/** @param {number} value without the last digits that only rounding made, as `sweeping/boxes.py` has it */
function cleaned(value) {
  return Number(value.toPrecision(10));
}

/** @param {number} value a half goes to the even neighbour, as in Python */
function halfToEven(value) {
  const near = Math.round(value);
  return near - value === 0.5 && near % 2 ? near - 1 : near;
}

/** @param {number[]} values the largest gap between neighbours over the smallest */
function uneven(values) {
  const gaps = values.slice(1).map((value, i) => value - values[i]);
  return Math.max(...gaps) / Math.min(...gaps);
}

/** @param {number} value @param {Side} side */
function inSide(value, [low, high]) {
  return low <= value && value <= high;
}

/**
 * The rectangles of each cell, in the order of the cells.
 * @param {Ruler} x
 * @param {Ruler} y
 * @param {Pair[]} cells
 * @returns {Rect[][]}
 */
export function areasOf(x, y, cells) {
  /** @type {Rect[][]} */
  const found = cells.map(() => []);
  const known = new Map(cells.map(([a, b], i) => [`${a} ${b}`, i]));
  const columns = x.sides();
  const rows = y.sides();
  const inside = buckets(columns, rows, cells);
  for (const [place, members] of inside) {
    const box = /** @type {[Side, Side]} */ ([columns[Math.floor(place / rows.length)], rows[place % rows.length]]);
    halve(x, y, box, members, cells, (leaf, few) => quarter(x, y, leaf, few, cells, known, found));
  }
  return found.map(joined);
}

/**
 * Cells by the boxes of the grid they belong to: on a side between two boxes, to both.
 * @param {Side[]} columns
 * @param {Side[]} rows
 * @param {Pair[]} cells
 */
function buckets(columns, rows, cells) {
  /** @type {Map<number, number[]>} */
  const inside = new Map();
  cells.forEach(([a, b], i) => {
    for (const column of around(columns, a)) {
      for (const row of around(rows, b)) {
        const place = column * rows.length + row;
        const members = inside.get(place);
        if (members) members.push(i);
        else inside.set(place, [i]);
      }
    }
  });
  return inside;
}

/** @param {Side[]} sides ascending @param {number} value @returns {number[]} which of them hold it */
function around(sides, value) {
  let [from, to] = [0, sides.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (sides[middle][1] < value) from = middle + 1;
    else to = middle;
  }
  return [from, from + 1].filter((i) => i < sides.length && inSide(value, sides[i]));
}

/**
 * @param {Ruler} x
 * @param {Ruler} y
 * @param {[Side, Side]} box
 * @param {number[]} members
 * @param {Pair[]} cells
 * @param {(box: [Side, Side], members: number[]) => void} leaf called with each box that is not halved
 */
function halve(x, y, box, members, cells, leaf) {
  const middles = [x.middle(box[0]), y.middle(box[1])];
  if (!isHalved(box, middles, members, cells)) return leaf(box, members);
  const parts = box.map((side, i) => {
    const middle = middles[i];
    return middle === null ? [side] : /** @type {Side[]} */ ([[side[0], middle], [middle, side[1]]]); // prettier-ignore
  });
  for (const across of parts[0]) {
    for (const up of parts[1]) {
      const few = members.filter((i) => inSide(cells[i][0], across) && inSide(cells[i][1], up));
      halve(x, y, [across, up], few, cells, leaf);
    }
  }
}

/**
 * Whether cells lie strictly inside every side that has a middle; at both ends of a side that has none.
 * @param {[Side, Side]} box
 * @param {(number|null)[]} middles
 * @param {number[]} members
 * @param {Pair[]} cells
 */
function isHalved(box, middles, members, cells) {
  const tight = middles.findIndex((middle) => middle === null);
  if (middles[0] === null && middles[1] === null) return false;
  const inner = members.filter((i) =>
    box.every(([low, high], axis) => middles[axis] === null || (low < cells[i][axis] && cells[i][axis] < high)),
  );
  return tight < 0 ? inner.length > 0 : box[tight].every((end) => inner.some((i) => cells[i][tight] === end));
}

/**
 * @param {Ruler} ruler
 * @param {Side} side
 * @returns {[owner: number, from: number, to: number][]}
 */
function halvesOf(ruler, [low, high]) {
  const [first, last] = ruler.reach;
  const at = ruler.place(low);
  if (low === high) return ruler.named ? [[low, at - ALONE, at + ALONE]] : [[low, first, last]];
  const start = low === ruler.values[0] ? first : at;
  const stop = high === ruler.values[ruler.values.length - 1] ? last : ruler.place(high);
  const middle = (at + ruler.place(high)) / 2;
  return [[low, start, middle], [high, middle, stop]]; // prettier-ignore
}

/**
 * @param {Ruler} x
 * @param {Ruler} y
 * @param {[Side, Side]} box
 * @param {number[]} members
 * @param {Pair[]} cells
 * @param {Map<string, number>} known
 * @param {Rect[][]} found receives the quarters
 */
function quarter(x, y, box, members, cells, known, found) {
  for (const [column, left, right] of halvesOf(x, box[0])) {
    for (const [row, bottom, top] of halvesOf(y, box[1])) {
      const hole = x.values.includes(column) && y.values.includes(row);
      const owner = known.get(`${column} ${row}`) ?? (hole ? undefined : nearest(x, y, [column, row], box, members, cells));
      if (owner !== undefined) found[owner].push({ left, right, bottom, top });
    }
  }
}

/**
 * The cell that stands in for one that a refinement has not reached yet.
 * @param {Ruler} x
 * @param {Ruler} y
 * @param {Pair} corner
 * @param {[Side, Side]} box
 * @param {number[]} members
 * @param {Pair[]} cells
 * @returns {number|undefined}
 */
function nearest(x, y, corner, box, members, cells) {
  const far = (/** @type {number} */ i) =>
    [x, y].reduce((sum, ruler, axis) => {
      const size = ruler.place(box[axis][1]) - ruler.place(box[axis][0]) || 1;
      return sum + Math.abs(ruler.place(cells[i][axis]) - ruler.place(corner[axis])) / size;
    }, 0);
  return members.length ? members.reduce((best, i) => (far(i) < far(best) ? i : best)) : undefined;
}

/** Neighbours made one, first along rows, then along columns. @param {Rect[]} rects */
function joined(rects) {
  /** @type {Rect[]} */
  const rows = [];
  for (const rect of [...rects].sort((a, b) => a.bottom - b.bottom || a.top - b.top || a.left - b.left)) {
    const before = rows[rows.length - 1];
    if (before && before.bottom === rect.bottom && before.top === rect.top && before.right === rect.left) before.right = rect.right;
    else rows.push({ ...rect });
  }
  /** @type {Rect[]} */
  const whole = [];
  for (const rect of rows.sort((a, b) => a.left - b.left || a.right - b.right || a.bottom - b.bottom)) {
    const before = whole[whole.length - 1];
    if (before && before.left === rect.left && before.right === rect.right && before.top === rect.bottom) before.top = rect.top;
    else whole.push(rect);
  }
  return whole;
}
