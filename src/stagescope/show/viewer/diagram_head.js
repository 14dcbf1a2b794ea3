/** The head of the page of a sweep: what it is, what is missing, which options stay; and what is said above a diagram. */

import { clocksOf, statisticText } from "./diagram_words.js";
import { count, el, nameOf } from "./dom.js";
import { titleRow } from "./page_head.js";

/** @typedef {import("./sweep.js").SweepTable} SweepTable */
/** @typedef {import("./sweep.js").SweepCell} SweepCell */
/** @typedef {import("./sweep.js").Ask} Ask */

const FOLDED = 6; // options that are shown without a click

/** @param {SweepTable} table @param {{turnTheme: () => void, help: HTMLDialogElement}} page */
export function sweepHead({ data, outcomes }, page) {
  const failed = outcomes.filter((how) => how >= 0).length;
  const wrong = [failed ? `${count(failed)} failed` : "", ...data.notes].filter(Boolean);
  const fact = (/** @type {string} */ text, /** @type {string} */ kind) => el("li", { class: kind }, el("span", { class: "run-status", text }));
  return el("header", { class: "page-head" }, [
    titleRow(data.title, data.version, { theme: () => page.turnTheme(), help: () => page.help.showModal() }),
    el("ul", { class: "runs" }, [
      el("li", { class: "run" }, nameOf(data.study, 200)),
      fact(counted(data.rows, "run"), "run"),
      ...wrong.map((text) => fact(text, "run wrong")),
    ]),
    data.fixed.length ? fixedOptions(data.fixed) : null,
  ]);
}

/** @param {[string, string][]} fixed */
function fixedOptions(fixed) {
  const shown = fixed.map(([name, value]) => el("span", { class: "fixed-option" }, [nameOf(name, 60), " ", el("b", {}, nameOf(value, 80))]));
  if (fixed.length <= FOLDED) return el("p", { class: "fixed" }, [el("span", { class: "fixed-name", text: "All runs:" }), ...shown]);
  return el("details", { class: "fixed" }, [el("summary", { text: `All runs: ${fixed.length} options that are no defaults` }), ...shown]);
}

/** What is said above a diagram, in lines. @param {SweepTable} table @param {Ask} ask @param {SweepCell[]} cells */
export function aboutLines(table, ask, cells) {
  const column = table.column(ask.color);
  const runs = cells.reduce((sum, { rows }) => sum + rows.length, 0);
  const broken = cells.filter(({ lack }) => lack === "failed").length;
  const said = [counted(cells.length, "cell"), counted(runs, "run"), statisticText(column, cells, ask.y !== null)];
  const several = clocksOf(table, column, cells).length > 1;
  return [
    el("p", {}, [said.filter(Boolean).join(", "), broken ? `; in ${counted(broken, "cell")} all runs failed` : ""]),
    column.about ? el("p", {}, nameOf(column.about, 300)) : null,
    boundaryShown(table, ask) ? el("p", {}, nameOf(`line: ${table.data.boundary?.title}`, 300)) : null,
    several ? el("p", { class: "diagram-note" }, nameOf(table.data.clock_note, 400)) : null,
  ].filter((line) => line !== null);
}

/** Whether the line of theory lies over the axes drawn. @param {SweepTable} table @param {Ask} ask */
export function boundaryShown({ data }, ask) {
  return Boolean(data.boundary?.axes.includes(ask.x) && data.boundary.axes.includes(ask.y ?? ""));
}

/** @param {number} n @param {string} what */
function counted(n, what) {
  return `${count(n)} ${what}${n === 1 ? "" : "s"}`;
}
