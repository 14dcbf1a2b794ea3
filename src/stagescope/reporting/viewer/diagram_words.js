/**
 * What a diagram says in words: why a cell has no value, until when runs went, which clocks there are.
 * `reporting/diagram_words.py` says the same in figures.
 */

import { short } from "./dom.js";

/** @typedef {import("./sweep.js").SweepTable} SweepTable */
/** @typedef {import("./sweep.js").SweepCell} SweepCell */
/** @typedef {import("./sweep.js").Column} Column */
/** @typedef {import("./sweep.js").Ask} Ask */
/** @typedef {Map<string, [number, number]>} Ends by clock, the first and the last place where runs ended */

export const AT_START = "there at the start";
export const BEYOND = ["not reached", "in progress"]; // what a longer run might have shown

/** @param {Ends} ends "t = 4000", "t = 800 to 4000", "t = 800 or step 300" */
function endsText(ends) {
  const said = [...ends].map(([clock, [low, high]]) => {
    const span = low === high ? short(low, 6) : `${short(low, 6)} to ${short(high, 6)}`;
    return clock === "step" ? `step ${span}` : `${clock} = ${span}`;
  });
  return said.join(" or ") || "the end of the run";
}

/** @param {string} lack @param {Ends} ends @param {string} none the word for a row that has no such thing */
export function lackText(lack, ends, none) {
  if (lack === "not reached") return `not reached by ${endsText(ends)}`;
  if (lack === "in progress") return ends.size ? `in progress at the end (${endsText(ends)})` : "in progress at the end";
  return lack === "none" ? none : lack;
}

/**
 * What the legend says of cells without a value; failures are said elsewhere.
 * @param {SweepTable} table
 * @param {Column} column
 * @param {SweepCell[]} cells
 * @returns {Map<string, string>}
 */
export function lacksOf(table, column, cells) {
  /** @type {Map<string, string>} */
  const found = new Map();
  for (const lack of [...BEYOND, "none"]) {
    const those = cells.filter((cell) => cell.lack === lack);
    if (!those.length) continue;
    const said = lackText(lack, table.ends(column, those.flatMap(({ rows }) => rows)), column.none);
    found.set(lack, BEYOND.includes(lack) && those.some(({ known }) => known) ? `${said}, by the median seed` : said);
  }
  return found;
}

/** How the rows of a cell become one value. @param {Column} column @param {SweepCell[]} cells @param {boolean} map */
export function statisticText(column, cells, map) {
  const counts = cells.map(({ rows }) => rows.length);
  const [fewest, most] = [Math.min(...counts), Math.max(...counts)];
  if (!(most > 1)) return "";
  const seeds = fewest === most ? `${most} seeds` : `${fewest} to ${most} seeds`;
  if (column.kind !== "word") return `median of ${seeds}`;
  return map && cells.some(({ known }) => known) ? `most frequent of ${seeds}` : seeds;
}

/** Clocks of the runs that are shown, if the column is a time. @param {SweepTable} table @param {Column} column @param {SweepCell[]} cells */
export function clocksOf(table, column, cells) {
  if (column.kind !== "time") return [];
  const found = new Set(cells.flatMap(({ rows }) => rows.map((row) => table.clock(row))));
  return [...found].filter((clock) => clock !== null).sort().reverse(); // t before steps
}

/** The name of a column with the clocks that it is counted in. @param {SweepTable} table @param {Column} column @param {SweepCell[]} cells */
export function unitText(table, column, cells) {
  const clocks = clocksOf(table, column, cells);
  return column.name + (clocks.length ? ` (in ${clocks.join(" or ")})` : "");
}

/**
 * That times are counted in different units, and where, as far as one axis decides it; empty if they are not.
 * @param {SweepTable} table
 * @param {Column} column
 * @param {SweepCell[]} cells
 */
export function clockNote(table, column, cells) {
  const clocks = clocksOf(table, column, cells);
  if (clocks.length < 2) return "";
  const rows = cells.flatMap((cell) => cell.rows).filter((row) => table.clock(row) !== null);
  for (const { name } of table.data.axes) {
    const of = clocks.map((clock) => new Set(rows.filter((row) => table.clock(row) === clock).map((row) => table.column(name).items[row])));
    const all = new Set(of.flatMap((values) => [...values]));
    if (of.reduce((sum, { size }) => sum + size, 0) !== all.size) continue;
    const said = clocks.map((clock, i) => `in ${unit(clock)} for ${name} = ${[...of[i]].map((value) => table.wordOf(name, value)).join(", ")}`);
    return `times are ${said.join(" and ")}: they do not compare`;
  }
  return `times are in ${clocks.map(unit).join(" or in ")}, by run: they do not compare`;
}

/** @param {string} clock */
function unit(clock) {
  return clock === "step" ? "steps" : clock;
}
