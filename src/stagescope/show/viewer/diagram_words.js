/** What is said of all cells that are shown: why some have no value, how seeds become one value, which clocks there are. */

import { BEYOND } from "./sweep.js";

/** @typedef {import("./sweep.js").SweepTable} SweepTable */
/** @typedef {import("./sweep.js").SweepCell} SweepCell */
/** @typedef {import("./sweep.js").Column} Column */

export const AT_START = "there at the start";
export const BY_MEDIAN = ", by the median seed";

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
    const said = table.lackText(column, those.flatMap(({ rows }) => rows), lack); // prettier-ignore
    found.set(lack, BEYOND.includes(lack) && those.some(({ known }) => known) ? `${said}${BY_MEDIAN}` : said);
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
  const found = new Set(cells.flatMap(({ rows }) => rows.map((row) => table.read("clock", row))));
  return table.data.clocks.filter((clock) => found.has(clock));
}

/** The name of a column with the clocks that it is counted in. @param {SweepTable} table @param {Column} column @param {SweepCell[]} cells */
export function unitText(table, column, cells) {
  const clocks = clocksOf(table, column, cells);
  return column.name + (clocks.length ? ` (in ${clocks.join(" or ")})` : "");
}
