/**
 * What a panel shows now, as a file: CSV of the numbers, SVG of the drawing, PNG at twice the size.
 */

import { clean, el, setText } from "./dom.js";

/** @typedef {import("./types.js").Panel} Panel */
/** @typedef {import("./types.js").Table} Table */

const SCALE = 2;
const KEPT = 60_000; // ms a finished file stays in memory for the browser to fetch

const FORMULA = /^[=+\-@\t\r]/;
const NUMBERS = /^-?[\d.]+(e[-+]?\d+)?( -?[\d.]+(e[-+]?\d+)?)*$/;

/**
 * Quoted where commas, quotes or line breaks ask for it. A text that a spreadsheet would run as a formula begins with '.
 * @param {string|number|null} cell
 */
function csvCell(cell) {
  if (cell === null) return "";
  const risky = typeof cell === "string" && FORMULA.test(cell) && !NUMBERS.test(cell);
  const text = (risky ? "'" : "") + clean(cell);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * RFC 4180 in UTF-8, without a byte order mark, which programs other than spreadsheets take for a part of the first name.
 * @param {Table} table
 */
export function csvOf({ columns, rows }) {
  return [columns, ...rows].map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

/**
 * @param {Blob} blob
 * @param {string} name
 */
function save(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = el("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), KEPT);
}

/**
 * @param {HTMLCanvasElement} canvas
 * @returns {Promise<Blob>}
 */
function png(canvas) {
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture is too large for this browser"))), "image/png");
  });
}

/**
 * The drawing as pixels, twice as many a side.
 * @param {string} svg
 * @returns {Promise<HTMLCanvasElement>}
 */
export async function rasterOf(svg) {
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = el("canvas", { width: image.naturalWidth * SCALE, height: image.naturalHeight * SCALE });
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return canvas;
  } finally {
    URL.revokeObjectURL(address);
  }
}

/** @param {string} name safe on every file system */
function fileName(name) {
  return (
    clean(name)
      .replace(/[^\p{L}\p{N}._-]+/gu, "-")
      .replace(/^[-.]+|[-.]+$/g, "")
      .slice(0, 80) || "panel"
  );
}

/**
 * The ways to save a panel: names of file types and what makes their bytes.
 * @param {Panel} panel
 * @returns {Map<string, () => Promise<Blob>>}
 */
export function exportsOf(panel) {
  const { table, svg } = panel;
  /** @type {Map<string, () => Promise<Blob>>} */
  const ways = new Map();
  if (table) ways.set("CSV", async () => new Blob([csvOf(table())], { type: "text/csv" }));
  if (svg) ways.set("PNG", async () => png(await rasterOf(svg())));
  if (svg) ways.set("SVG", async () => new Blob([svg()], { type: "image/svg+xml" }));
  return ways;
}

/**
 * A folded menu that saves what the panel shows at the moment of the click; null if the panel cannot be saved.
 * @param {Panel} panel
 * @param {() => string} name of the file without its ending, such as "attention-frame-12"
 * @returns {HTMLDetailsElement|null}
 */
export function exportMenu(panel, name) {
  const ways = exportsOf(panel);
  if (!ways.size) return null;
  const said = el("span", { class: "export-said", role: "status" });
  const buttons = [...ways].map(([kind, make]) => {
    const saved = async () => {
      try {
        save(await make(), `${fileName(name())}.${kind.toLowerCase()}`);
        setText(said, "");
        menu.open = false;
        summary.focus();
      } catch (error) {
        setText(said, `Not saved: ${error instanceof Error ? error.message : String(error)}`);
      }
    };
    return el("button", { type: "button", text: kind, data: { export: kind.toLowerCase() }, on: { click: saved } });
  });
  const summary = el("summary", { text: "Export", title: "Save what is shown now" });
  const menu = el("details", { class: "export" }, [summary, el("div", { class: "export-ways" }, [...buttons, said])]);
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    summary.focus();
    event.stopPropagation();
  });
  menu.addEventListener("focusout", (event) => {
    if (event.relatedTarget instanceof Node && !menu.contains(event.relatedTarget)) menu.open = false;
  });
  return menu;
}
