/** The table of a sweep: its columns, its cells on chosen axes, and what they say in a chosen column. */

import { Ruler } from "./areas.js";
import { BEYOND } from "./diagram_words.js";
import { meanOf, medianOf, Resampling } from "./resampling.js";

/** @typedef {import("./types.js").SweepData} SweepData */
/** @typedef {import("./types.js").SweepColumn} SweepColumn */
/** @typedef {import("./blocks.js").Store} Store */
/** @typedef {SweepColumn & {items: ArrayLike<number>, codes: ArrayLike<number>|null}} Column numbers (NaN: none) or numbers of names (-1: none); why there is none */
/** @typedef {{x: string, y: string|null, color: string, at: Map<string, number>}} Ask what is drawn; `at` cuts other axes */
/**
 * @typedef {{x: number, y: number, rows: number[], value: number|null, lack: Lack, known: number, beyond: number,
 *   failed: number, torn: boolean, start: boolean}} SweepCell
 *   `value`: median, or the number of the most frequent name; `lack`: why there is none; `torn`: seeds disagree, or some have
 *   no value; `start`: the event was there at the start.
 */

/** @typedef {null|"failed"|"not reached"|"in progress"|"none"} Lack */

const UNREACHED = -1;
/** Why a row has no value, by the number that travels. @type {Lack[]} */
const LACKS = [null, "failed", "not reached", "in progress", "none"];
const MOMENTS = ["events", "starts"]; // groups of columns whose times are moments: one at 0 had come before the run began

export class SweepTable {
  /**
   * @param {SweepData} data
   * @param {Map<string, Column>} columns
   * @param {string[]} recreate one command a row
   * @param {string[]} run
   * @param {Resampling} resampling
   */
  constructor(data, columns, recreate, run, resampling) {
    this.data = data;
    this.columns = columns;
    this.recreate = recreate;
    this.run = run;
    this.resampling = resampling;
    this.rulers = new Map(data.axes.map((axis) => [axis.name, new Ruler(axis)]));
    this.done = this.reached();
  }

  /** @param {Store} store @param {SweepData} data */
  static async open(store, data) {
    /** @type {Map<string, Column>} */
    const columns = new Map();
    for (const column of data.columns) {
      const codes = column.lacks && /** @type {Uint8Array} */ (await store.get(column.lacks));
      columns.set(column.name, { ...column, items: await store.get(column.values), codes });
    }
    const text = async (/** @type {import("./types.js").Block} */ block) =>
      new TextDecoder().decode(/** @type {Uint8Array} */ (await store.get(block))).split("\0");
    /** @type {Map<number, Int32Array>} */
    const draws = new Map();
    for (const [n, block] of data.resamples) draws.set(n, /** @type {Int32Array} */ (await store.get(block)));
    return new SweepTable(data, columns, await text(data.recreate), await text(data.run), new Resampling(draws, data.confidence));
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

  /** Whether the run of each row reached its end. */
  reached() {
    const { items, names = [] } = this.column("status");
    return Array.from(items, (code) => this.data.done.includes(names[code]));
  }

  /** @param {Column} column @param {number} row @returns {number|null} */
  item({ kind, items }, row) {
    const item = items[row];
    return kind === "word" ? (item === UNREACHED ? null : item) : Number.isFinite(item) ? item : null;
  }

  /** @param {Column} column @param {number|null} item @returns {string|number|null} a number, or a name */
  shown({ kind, names = [] }, item) {
    return item === null || kind !== "word" ? item : names[item];
  }

  /** @param {string} name @param {number} row */
  read(name, row) {
    const column = this.column(name);
    return this.shown(column, this.item(column, row));
  }

  /** Values that rows have on an axis, ascending. @param {string} name @returns {number[]} */
  valuesOf(name) {
    return [...new Set(Array.from(this.column(name).items))].sort((a, b) => a - b);
  }

  /** @param {string} name of an axis @param {number} value */
  wordOf(name, value) {
    const ruler = this.ruler(name);
    return ruler.named ? (this.column(name).names ?? [])[value] : String(value);
  }

  /** Names of a column, the most frequent first; verdicts in their own order. @param {Column} column @returns {number[]} */
  ranked(column) {
    const names = column.names ?? [];
    const counts = names.map(() => 0);
    for (let row = 0; row < column.items.length; row++) if (column.items[row] >= 0) counts[column.items[row]]++;
    const used = names.map((_, i) => i).filter((i) => counts[i]);
    if (used.every((i) => VERDICTS.includes(names[i]))) return used.sort((a, b) => VERDICTS.indexOf(names[a]) - VERDICTS.indexOf(names[b]));
    return used.sort((a, b) => counts[b] - counts[a] || (names[a] < names[b] ? -1 : 1));
  }

  /**
   * The cells of a cut, each with what it says.
   * @param {Ask} ask
   * @returns {SweepCell[]}
   */
  cells({ x, y, color, at }) {
    const across = this.column(x).items;
    const up = y === null ? null : this.column(y).items;
    const cuts = [...at].map(([name, value]) => /** @type {const} */ ([this.column(name).items, value]));
    /** @type {Map<string, number[]>} */
    const groups = new Map();
    for (let row = 0; row < this.data.rows; row++) {
      if (!cuts.every(([items, value]) => items[row] === value)) continue;
      const key = `${across[row]} ${up ? up[row] : 0}`;
      const members = groups.get(key);
      if (members) members.push(row);
      else groups.set(key, [row]);
    }
    const column = this.column(color);
    return [...groups.values()].map((rows) => ({
      x: across[rows[0]],
      y: up ? up[rows[0]] : 0,
      rows,
      ...this.said(column, rows),
    }));
  }

  /** Why a row has no value; null where it has one. @param {Column} column @param {number} row @returns {Lack} */
  lack({ codes }, row) {
    return codes ? LACKS[codes[row]] : null;
  }

  /** @param {number} row @returns {string|null} what the times of a run are counted in */
  clock(row) {
    const found = this.columns.has("clock") ? this.read("clock", row) : null;
    return found === null ? null : String(found);
  }

  /** Where runs ended that a longer run would add to, by clock. @param {Column} column @param {number[]} rows @returns {import("./diagram_words.js").Ends} */
  ends(column, rows) {
    /** @type {import("./diagram_words.js").Ends} */
    const found = new Map();
    for (const row of rows) {
      const clock = this.clock(row);
      const end = this.columns.has("end") ? this.item(this.column("end"), row) : null;
      if (clock === null || end === null || !BEYOND.includes(this.lack(column, row) ?? "")) continue;
      const [low, high] = found.get(clock) ?? [end, end];
      found.set(clock, [Math.min(low, end), Math.max(high, end)]);
    }
    return found;
  }

  /** @param {Column} column @param {number[]} rows */
  said(column, rows) {
    const items = this.known(column, rows);
    const lacks = rows.map((row) => this.lack(column, row));
    const later = lacks.filter((lack) => BEYOND.includes(lack ?? ""));
    const failed = lacks.filter((lack) => lack === "failed").length;
    const counts = [items.length, later.length, failed, rows.length - items.length - later.length - failed];
    const differ = column.kind === "word" && new Set(items).size > 1;
    const value = column.kind === "word" ? mostFrequent(items, column.names ?? []) : this.median(column, rows);
    const common = later.filter((lack) => lack === BEYOND[0]).length * 2 >= later.length ? BEYOND[0] : BEYOND[1];
    const why = /** @type {Lack} */ (later.length ? common : failed === rows.length ? "failed" : "none");
    return {
      value,
      lack: value === null ? why : null,
      known: items.length,
      beyond: later.length,
      failed,
      torn: counts.filter(Boolean).length > 1 || differ,
      start: value === 0 && column.kind === "time" && MOMENTS.includes(column.group),
    };
  }

  /** @param {Column} column @param {number[]} rows @returns {number[]} */
  known(column, rows) {
    return rows.map((row) => this.item(column, row)).filter((item) => item !== null);
  }

  /** Numbers of rows, infinite where a time had not come by the end of its run. @param {Column} column @param {number[]} rows */
  ordered(column, rows) {
    const later = rows.filter((row) => BEYOND.includes(this.lack(column, row) ?? "")).length;
    return [...this.known(column, rows), ...new Array(later).fill(Infinity)];
  }

  /** @param {Column} column @param {number[]} rows @returns {number|null} null also where it is beyond the end of runs */
  median(column, rows) {
    const numbers = this.ordered(column, rows);
    const found = numbers.length ? medianOf(numbers) : Infinity;
    return Number.isFinite(found) ? found : null;
  }

  /** The interval of a cell's median; its upper end may be beyond: null. @param {Column} column @param {number[]} rows */
  interval(column, rows) {
    return column.kind === "word" ? null : this.resampling.interval(this.ordered(column, rows), medianOf);
  }

  /**
   * The share of each name among the rows that have one, with its interval; the largest first.
   * @param {Column} column
   * @param {number[]} rows
   */
  shares(column, rows) {
    const items = this.known(column, rows);
    return [...new Set(items)]
      .map((item) => {
        const hits = items.map((each) => Number(each === item));
        return { item, share: meanOf(hits), interval: this.resampling.interval(hits, meanOf) };
      })
      .sort((a, b) => b.share - a.share);
  }
}

const VERDICTS = ["confirmed", "violated", "inconclusive", "not applicable"];

/** Of equally frequent names the last one, as in the figure; null of none. @param {number[]} items @param {string[]} names */
function mostFrequent(items, names) {
  if (!items.length) return null;
  /** @type {Map<number, number>} */
  const counts = new Map();
  for (const item of items) counts.set(item, (counts.get(item) ?? 0) + 1);
  return [...counts].reduce((best, one) => (one[1] > best[1] || (one[1] === best[1] && names[one[0]] > names[best[0]]) ? one : best))[0];
}
