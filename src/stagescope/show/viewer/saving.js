/** The numbers that a panel shows now, as a file. Figures are made by the command line: `stagescope figures`, `stagescope diagram`. */

import { clean, el } from "./dom.js";

/** @typedef {import("./types.js").Table} Table */

const KEPT = 60_000; // ms a finished file stays in memory for the browser to fetch
const FORMULA = /^[=+\-@\t\r]/;

/**
 * Quoted where commas, quotes or line breaks ask for it. A text that a spreadsheet would run as a formula begins with '.
 * @param {string|number|null} cell
 */
function csvCell(cell) {
  if (cell === null) return "";
  const text = (typeof cell === "string" && FORMULA.test(cell) ? "'" : "") + clean(cell);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * RFC 4180 in UTF-8, without a byte order mark, which programs other than spreadsheets take for a part of the first name.
 * @param {Table} table
 */
function csvOf({ columns, rows }) {
  return [columns, ...rows].map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

/**
 * A button that saves the numbers shown at the moment of the click.
 * @param {() => Table} table
 * @param {() => string} name of the file without its ending, such as "attention-frame-12"
 * @param {string} figures the command that makes figures of the same
 */
export function csvButton(table, name, figures) {
  const click = () => {
    const address = URL.createObjectURL(new Blob([csvOf(table())], { type: "text/csv" }));
    const safe = clean(name()).replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[-.]+|[-.]+$/g, "").slice(0, 80); // prettier-ignore
    el("a", { href: address, download: `${safe || "panel"}.csv` }).click();
    setTimeout(() => URL.revokeObjectURL(address), KEPT);
  };
  const title = `Save the numbers shown now as CSV. Figures as PDF, SVG and PNG: ${figures}`;
  return el("button", { type: "button", class: "plain", text: "CSV", title, on: { click } });
}
