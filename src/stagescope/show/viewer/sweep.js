/**
 * The table of a sweep: its columns, its cells on chosen axes, and what they say in a chosen column. Nothing is computed here:
 * statistics, areas and sentences come with the page (`show/diagram_page.py`).
 */

/** @typedef {import("./types.js").SweepData} SweepData */
/** @typedef {import("./types.js").SweepColumn} SweepColumn */
/** @typedef {import("./types.js").Block} Block */
/** @typedef {import("./blocks.js").Store} Store */
/** @typedef {import("./blocks.js").Numbers} Numbers */
/** @typedef {[low: number, high: number|null]} Span an interval; an upper end of null is beyond the end of the runs */
/** @typedef {{item: number, share: number, interval: Span|null}} Share of a name among the rows that have one */
/**
 * @typedef {SweepColumn & {items: Numbers, codes: Numbers|null, states: Numbers, medians: Numbers, intervals: Numbers|null,
 *   told: Map<number, Share[]>}} Column
 *   Of rows `items`: numbers (NaN: none) or numbers of names (-1: none), and `codes`: why there is none. Of cells the others.
 */
/** @typedef {{x: string, y: string|null, color: string, at: Map<string, number>}} Ask what is drawn; `at` cuts other axes */
/**
 * @typedef {{number: number, x: number, y: number, rows: number[], value: number|null, lack: Lack, interval: Span|null,
 *   shares: Share[], known: number, beyond: number, failed: number, torn: boolean, start: boolean}} SweepCell
 *   `value`: median, or the number of the most frequent name; `lack`: why there is none; `torn`: seeds disagree, or some have
 *   no value; `start`: the event was there at the start.
 */
/** @typedef {null|"failed"|"not reached"|"in progress"|"none"} Lack */
/** @typedef {{left: number, right: number, bottom: number, top: number}} Rect in places of the axes */

const NO_NAME = -1;
const MOST_ENDS = 3; // of runs that are named in one sentence
/** Why a cell has no value, by the number that travels, and what is added to it. @type {Lack[]} */
const LACKS = [null, "failed", "not reached", "in progress", "none"];
const TORN = 8;
const START = 16;
export const BEYOND = ["not reached", "in progress"]; // what a longer run might have shown

/** Where the values of an axis lie on paper. */
export class Ruler {
  /** @param {import("./types.js").SweepAxis} axis */
  constructor({ name, named, log, ordinal, reach, values, at, places }) {
    this.name = name;
    this.named = named;
    this.log = log;
    this.ordinal = ordinal;
    this.reach = reach;
    this.names = values.map(String);
    /** Values of the grid; of categories their numbers. @type {number[]} */
    this.values = named ? values.map((_, i) => i) : values.map(Number);
    /** Values that rows have, ascending. */
    this.at = at;
    this.places = new Map(at.map((value, i) => [value, places[i]]));
  }

  /** @param {number} value of a row, or a round one */
  place(value) {
    return this.places.get(value) ?? (this.log ? Math.log10(value) : value);
  }
}

export class SweepTable {
  /**
   * @param {SweepData} data
   * @param {Map<string, Column>} columns
   * @param {Record<"run"|"whys", string[]>} texts one command a row; kinds of lacks with their sentences
   * @param {Record<"cells"|"outcomes", Numbers>} numbers the cell of each row; how runs ended that did not reach their end
   * @param {{counts: Numbers, rects: Numbers}[]} areas
   */
  constructor(data, columns, { run, whys }, { cells, outcomes }, areas) {
    this.data = data;
    this.columns = columns;
    this.run = run;
    this.whys = whys.map((why) => why.split("\n"));
    this.outcomes = outcomes;
    this.pairs = areas;
    this.rulers = new Map(data.axes.map((axis) => [axis.name, new Ruler(axis)]));
    /** Rows of each cell. @type {number[][]} */
    this.members = [];
    cells.forEach((cell, row) => (this.members[cell] ??= []).push(row));
  }

  /** @param {Store} store @param {SweepData} data */
  static async open(store, data) {
    /** @type {Map<string, Column>} */
    const columns = new Map();
    const maybe = async (/** @type {Block|null|undefined} */ block) => (block ? store.get(block) : null);
    for (const column of data.columns) {
      const { states, values, intervals, shares } = column.cells;
      columns.set(column.name, {
        ...column,
        items: await store.get(column.values),
        codes: await maybe(column.lacks),
        states: await store.get(states),
        medians: await store.get(values),
        intervals: await maybe(intervals),
        told: sharesIn((await maybe(shares)) ?? new Float64Array()),
      });
    }
    const text = async (/** @type {Block} */ block) =>
      new TextDecoder().decode(/** @type {Uint8Array} */ (await store.get(block))).split("\0");
    const texts = { run: await text(data.run), whys: await text(data.whys) };
    const numbers = { cells: await store.get(data.cells), outcomes: await store.get(data.outcomes.values) };
    const areas = data.areas.map(async ({ counts, rects }) => ({ counts: await store.get(counts), rects: await store.get(rects) }));
    return new SweepTable(data, columns, texts, numbers, await Promise.all(areas));
  }

  /** @param {string} name @returns {Column} */
  column(name) {
    const found = this.columns.get(name);
    if (!found) throw new Error(`the sweep has no column ${name}`);
    return found;
  }

  /** @param {string} name @returns {Ruler} */
  ruler(name) {
    const found = this.rulers.get(name);
    if (!found) throw new Error(`the sweep has no axis ${name}`);
    return found;
  }

  /** @param {Column} column @param {number|null} item @returns {string|number|null} a number, or a name */
  shown({ kind, names = [] }, item) {
    return item === null || kind !== "word" ? item : names[item];
  }

  /** @param {string} name @param {number} row */
  read(name, row) {
    const column = this.column(name);
    return this.shown(column, itemOf(column, column.items, row));
  }

  /** @param {string} name of an axis @param {number} value */
  wordOf(name, value) {
    const { named, names } = this.ruler(name);
    return named ? names[value] : String(value);
  }

  /** The cells of a cut, each with what it says. @param {Ask} ask @returns {SweepCell[]} */
  cells({ x, y, color, at }) {
    const across = this.column(x).items;
    const up = y === null ? null : this.column(y).items;
    const cuts = [...at].map(([name, value]) => /** @type {const} */ ([this.column(name).items, value]));
    const column = this.column(color);
    return this.members.flatMap((rows, number) => {
      const [row] = rows;
      if (!cuts.every(([items, value]) => items[row] === value)) return [];
      return [{ number, x: across[row], y: up ? up[row] : 0, rows, ...this.said(column, number) }];
    });
  }

  /** @param {Column} column @param {number} number of a cell */
  said(column, number) {
    const value = itemOf(column, column.medians, number);
    const lacks = this.members[number].map((row) => this.why(column, row)[0]);
    const state = column.states[number];
    return {
      value,
      lack: LACKS[state % TORN],
      torn: (state & TORN) > 0,
      start: (state & START) > 0,
      interval: column.intervals && spanOf(column.intervals[2 * number], column.intervals[2 * number + 1]),
      shares: column.kind !== "word" || value === null ? [] : (column.told.get(number) ?? [{ item: value, share: 1, interval: null }]),
      known: lacks.filter((lack) => !lack).length,
      beyond: lacks.filter((lack) => BEYOND.includes(lack)).length,
      failed: lacks.filter((lack) => lack === "failed").length,
    };
  }

  /** Why a row has no value: the kind and the sentence, both empty where it has one. @param {Column} column @param {number} row */
  why({ codes }, row) {
    return this.whys[codes ? codes[row] : 0];
  }

  /** What is said of rows that lack a value in one way: until when runs went, unless they ended at many different times. @param {Column} column @param {number[]} rows @param {string} lack */
  lackText(column, rows, lack) {
    const said = new Set(rows.map((row) => this.why(column, row)).flatMap(([kind, text]) => (kind === lack ? [text] : [])));
    if (!said.size || said.size > MOST_ENDS) return this.data.lacks[lack] ?? lack;
    return [...said].map((text, i) => (i ? text.replace(/^(not reached by|in progress at the end) /, "") : text)).join(" or ");
  }

  /** The areas of cells over two axes. @param {string} x @param {string} y @param {SweepCell[]} cells @returns {Rect[][]} */
  areas(x, y, cells) {
    const [i, j] = [x, y].map((name) => this.data.axes.findIndex((axis) => axis.name === name));
    const { counts, rects } = this.pairs[this.data.areas.findIndex(({ axes }) => axes[0] === Math.min(i, j) && axes[1] === Math.max(i, j))];
    /** @type {Rect[][]} */
    const found = [];
    let from = 0;
    for (const count of counts) {
      const own = Array.from({ length: count }, (_, k) => rects.subarray(from + 4 * k, from + 4 * k + 4));
      found.push(own.map(([a, b, c, d]) => (i < j ? { left: a, right: b, bottom: c, top: d } : { left: c, right: d, bottom: a, top: b })));
      from += 4 * count;
    }
    return cells.map(({ number }) => found[number]);
  }

  /** How runs of a cell failed, the most frequent first. @param {SweepCell} cell @returns {[said: string, times: number][]} */
  reasons({ rows }) {
    /** @type {Map<string, number>} */
    const counts = new Map();
    for (const row of rows) {
      const said = this.data.outcomes.names[this.outcomes[row]];
      if (said !== undefined) counts.set(said, (counts.get(said) ?? 0) + 1);
    }
    return [...counts].sort((a, b) => b[1] - a[1]);
  }
}

/** @param {Column} column @param {Numbers} items of rows or of cells @param {number} i @returns {number|null} */
function itemOf({ kind }, items, i) {
  return kind === "word" ? (items[i] === NO_NAME ? null : items[i]) : Number.isFinite(items[i]) ? items[i] : null;
}

/** @param {number} low @param {number} high @returns {Span|null} */
function spanOf(low, high) {
  return Number.isNaN(low) ? null : [low, high === Infinity ? null : high];
}

/** Shares by cell. @param {Numbers} numbers cell, name, share, low, high, one after the other */
function sharesIn(numbers) {
  /** @type {Map<number, Share[]>} */
  const found = new Map();
  for (let i = 0; i < numbers.length; i += 5) {
    const [cell, item, share, low, high] = numbers.subarray(i, i + 5);
    found.set(cell, [...(found.get(cell) ?? []), { item, share, interval: spanOf(low, high) }]);
  }
  return found;
}
