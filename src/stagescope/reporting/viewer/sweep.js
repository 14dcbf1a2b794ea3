/** The table of a sweep: its columns, its cells on chosen axes, and what they say in a chosen column. */

import { Ruler } from "./areas.js";
import { meanOf, medianOf, Resampling } from "./resampling.js";

/** @typedef {import("./types.js").SweepData} SweepData */
/** @typedef {import("./types.js").SweepColumn} SweepColumn */
/** @typedef {import("./blocks.js").Store} Store */
/** @typedef {SweepColumn & {items: ArrayLike<number>}} Column numbers (NaN: none) or numbers of names (-1: none) */
/** @typedef {{x: string, y: string|null, color: string, at: Map<string, number>}} Ask what is drawn; `at` cuts other axes */
/**
 * @typedef {{x: number, y: number, rows: number[], value: number|null, known: number, failed: number, torn: boolean}} SweepCell
 *   `value`: median, or the number of the most frequent name; `torn`: seeds disagree, or some have no value.
 */

const UNREACHED = -1;

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
    for (const column of data.columns) columns.set(column.name, { ...column, items: await store.get(column.values) });
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
    return kind === "number" ? (Number.isFinite(item) ? item : null) : item === UNREACHED ? null : item;
  }

  /** @param {Column} column @param {number|null} item @returns {string|number|null} a number, or a name */
  shown({ kind, names = [] }, item) {
    return item === null || kind === "number" ? item : names[item];
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

  /** @param {Column} column @param {number[]} rows */
  said(column, rows) {
    const items = this.known(column, rows);
    const failed = rows.filter((row) => !this.done[row]).length;
    const differ = column.kind === "category" && new Set(items).size > 1;
    const value = !items.length ? null : column.kind === "number" ? medianOf(items) : mostFrequent(items, column.names ?? []);
    return { value, known: items.length, failed, torn: value !== null && (items.length < rows.length || differ) };
  }

  /** @param {Column} column @param {number[]} rows @returns {number[]} */
  known(column, rows) {
    return rows.map((row) => this.item(column, row)).filter((item) => item !== null);
  }

  /** The interval of a cell's median. @param {Column} column @param {number[]} rows */
  interval(column, rows) {
    return column.kind === "number" ? this.resampling.interval(this.known(column, rows), medianOf) : null;
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

/** Of equally frequent names the last one, as in the figure. @param {number[]} items @param {string[]} names */
function mostFrequent(items, names) {
  /** @type {Map<number, number>} */
  const counts = new Map();
  for (const item of items) counts.set(item, (counts.get(item) ?? 0) + 1);
  return [...counts].reduce((best, one) => (one[1] > best[1] || (one[1] === best[1] && names[one[0]] > names[best[0]]) ? one : best))[0];
}
