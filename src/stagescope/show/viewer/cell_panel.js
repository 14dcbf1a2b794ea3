/** One cell of a sweep: what its runs say, why some failed, and the commands that make them again. */

import { AT_START, BY_MEDIAN } from "./diagram_words.js";
import { brief, clean, el, nameOf, short } from "./dom.js";
import { copyButton } from "./facts.js";
import { BEYOND } from "./sweep.js";
import { badge } from "./verdicts.js";

/** @typedef {import("./sweep.js").SweepTable} SweepTable */
/** @typedef {import("./sweep.js").SweepCell} SweepCell */
/** @typedef {import("./sweep.js").Ask} Ask */
/** @typedef {import("./types.js").SweepColumn} SweepColumn */

/** Titles of the groups of columns, in the order they are shown. @type {Object<string, string>} */
export const GROUPS = { run: "Run", events: "Events", starts: "Stages begin", durations: "Stages last", verdicts: "Claims", numbers: "Numbers" };
const LONG = 40; // characters of a reading from which it is set smaller
const SAID = ["seed", "reason"]; // columns that are shown elsewhere in the panel
const BUTTONS = 10; // seeds up to which each has a button

/** The value of every axis. @param {Ask} ask @param {SweepCell} cell @returns {[name: string, value: number][]} */
export function exactPlace(ask, cell) {
  return [[ask.x, cell.x], ...(ask.y === null ? [] : [/** @type {[string, number]} */ ([ask.y, cell.y])]), ...ask.at];
}

/** The same in words. @param {SweepTable} table @param {Ask} ask @param {SweepCell} cell @returns {[name: string, value: string][]} */
export function placeOf(table, ask, cell) {
  return exactPlace(ask, cell).map(([name, value]) => [name, table.ruler(name).named ? table.wordOf(name, value) : short(value, 6)]);
}

/** @param {number} share */
function percent(share) {
  return `${Math.round(100 * share)} %`;
}

/**
 * What a cell says in the column of the colour, in lines; the first is the value.
 * @param {SweepTable} table
 * @param {Ask} ask
 * @param {SweepCell} cell
 * @returns {string[]}
 */
export function readingOf(table, ask, cell) {
  const column = table.column(ask.color);
  const { rows, value, lack, known, failed, interval, shares } = cell;
  const several = rows.length > 1;
  if (lack === "failed") return [failedText(failed, rows.length)];
  const lines = [];
  if (lack !== null && BEYOND.includes(lack) && known) lines.push(`${lack === "in progress" ? "in progress at the end" : lack}${BY_MEDIAN}`);
  else if (lack !== null) lines.push(table.lackText(column, rows, lack));
  else if (cell.start) lines.push(AT_START);
  else if (column.kind !== "word") lines.push(short(value, 5));
  for (const { item, share, interval: span } of shares) {
    const sure = span ? ` (${percent(span[0])} to ${percent(span[1] ?? 1)})` : "";
    lines.push(`${table.shown(column, item)}${shares.length === 1 ? "" : `: ${percent(share)}${sure}`}`);
  }
  if (interval) lines.push(`${percent(table.data.confidence)} interval: ${short(interval[0])} ${upperText(interval[1])}`);
  return [...lines, ...(several ? countsText(table, column, cell) : [])];
}

/** @param {number|null} end null: beyond the end of the runs */
function upperText(end) {
  return end === null ? "to beyond the end of the runs" : `to ${short(end)}`;
}

/**
 * How many seeds say what, in lines.
 * @param {SweepTable} table
 * @param {import("./sweep.js").Column} column
 * @param {SweepCell} cell
 */
function countsText(table, column, { rows, known, beyond, failed }) {
  const all = rows.length;
  const lines = [known === all || beyond === all ? `${all} seeds` : known + beyond < all ? `${known + beyond} of ${all} seeds count` : ""];
  if (column.kind !== "word" && known) lines[0] = `median of ${known + beyond < all ? `the ${known + beyond} of ${all} seeds that count` : `${all} seeds`}`;
  for (const lack of [...(beyond < all ? BEYOND : []), "none"]) {
    const those = rows.filter((row) => table.why(column, row)[0] === lack).length;
    if (those) lines.push(`${those} of ${all} seeds: ${table.lackText(column, rows, lack)}`);
  }
  if (failed) lines.push(failedText(failed, all));
  return lines.filter(Boolean);
}

/** @param {number} failed @param {number} all */
function failedText(failed, all) {
  return all === 1 ? "failed" : failed === all ? `all ${all} runs failed` : `${failed} of ${all} runs failed`;
}

/**
 * @param {SweepTable} table
 * @param {Ask} ask
 * @param {SweepCell|null} cell
 * @param {number|null} chosen row
 * @param {(row: number) => void} choose
 * @returns {HTMLElement}
 */
export function cellPanel(table, ask, cell, chosen, choose) {
  if (!cell) return el("p", { class: "about", text: "Click a cell, or move with the arrow keys, to see its runs here and how to make them again." });
  const row = chosen !== null && cell.rows.includes(chosen) ? chosen : cell.rows[0];
  const reading = readingOf(table, ask, cell);
  return el("div", { class: "cell" }, [
    el("p", { class: "cell-place" }, placeOf(table, ask, cell).map(([name, value]) => el("span", {}, [nameOf(name, 60), " = ", el("b", {}, nameOf(value, 60))]))), // prettier-ignore
    el("p", { class: reading[0].length > LONG ? "cell-reading long" : "cell-reading" }, [el("span", { class: "muted" }, nameOf(ask.color, 60)), el("b", {}, nameOf(reading[0], 120))]),
    ...reading.slice(1).map((line) => el("p", { class: "cell-more" }, nameOf(line, 160))),
    failures(table.reasons(cell)),
    cell.rows.length > 1 ? seeds(table, cell, row, choose) : null,
    command("Make this run again", table.run[row]),
    ...Object.entries(GROUPS).map(([group, title]) => facts(table, group, title, row)),
  ]);
}

/** @param {[said: string, times: number][]} reasons */
function failures(reasons) {
  if (!reasons.length) return null;
  return el("ul", { class: "cell-failures" }, reasons.map(([said, times]) => el("li", {}, [nameOf(said, 400), times > 1 ? ` (${times} runs)` : null]))); // prettier-ignore
}

/** @param {SweepTable} table @param {SweepCell} cell @param {number} row @param {(row: number) => void} choose */
function seeds(table, cell, row, choose) {
  const named = cell.rows.map((each) => /** @type {const} */ ([each, `seed ${table.read("seed", each)}`]));
  if (named.length <= BUTTONS) {
    const buttons = named.map(([each, text]) =>
      el("button", { type: "button", text, "aria-pressed": String(each === row), on: { click: () => choose(each) } }),
    );
    return el("div", { class: "chooser", role: "group", "aria-label": "seeds" }, buttons);
  }
  const options = named.map(([each, text]) => el("option", { value: each, text, selected: each === row }));
  const change = (/** @type {Event} */ event) => choose(Number(/** @type {HTMLSelectElement} */ (event.target).value));
  return el("select", { class: "ask-select", "aria-label": "seed", on: { change } }, options);
}

/** @param {SweepTable} table @param {string} group @param {string} title @param {number} row */
function facts(table, group, title, row) {
  const columns = [...table.columns.values()].filter((column) => column.group === group && !SAID.includes(column.name));
  const known = columns.filter(({ name }) => table.read(name, row) !== null);
  const lacking = columns.filter((column) => !known.includes(column) && ["events", "durations"].includes(group) && table.why(column, row)[0] !== "none");
  /** @type {Map<string, typeof columns>} */
  const why = new Map();
  for (const column of lacking) {
    const [, said] = table.why(column, row);
    if (said !== "failed") why.set(said, [...(why.get(said) ?? []), column]); // that is said above, once
  }
  if (!known.length && !why.size) return null;
  const pairs = known.map((column) => [named(column), shownValue(column, table.read(column.name, row))]); // prettier-ignore
  for (const [said, those] of why) pairs.push([el("span", { text: said }), el("span", { class: "muted" }, those.flatMap((column, i) => [i ? ", " : null, named(column)]))]); // prettier-ignore
  return el("section", { class: "facts-part" }, [
    el("header", {}, el("h5", { text: title })),
    el("dl", {}, pairs.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])), // prettier-ignore
  ]);
}

/** The name of a column without its group; what it means is in its tooltip. @param {SweepColumn} column */
function named(column) {
  const shown = nameOf(column.name.replace(/^(stage|duration) /, ""), 80);
  if (column.about) shown.title = brief(column.about, 2000);
  return shown;
}

/** @param {SweepColumn} column @param {string|number|null} value */
function shownValue(column, value) {
  if (column.group === "verdicts") return badge(String(value));
  if (value === 0 && ["events", "starts"].includes(column.group)) return nameOf(`0: ${AT_START}`);
  return nameOf(typeof value === "number" ? short(value, 6) : value);
}

/** @param {string} title @param {string} text */
function command(title, text) {
  const shown = el("pre", { tabindex: 0 }, el("code", { text: clean(text) }));
  return el("section", { class: "facts-part" }, [el("header", {}, [el("h5", { text: title }), copyButton(clean(text), shown)]), shown]);
}
