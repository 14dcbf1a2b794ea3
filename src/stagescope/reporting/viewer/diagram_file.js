/** What a diagram shows, as a table and as a drawing with its title. */

import { reasonsOf } from "./cell_panel.js";
import { clockNote, statisticText, unitText } from "./diagram_words.js";
import { short } from "./dom.js";
import { svgFile, textShape, wrapped } from "./shapes.js";

/** @typedef {import("./types.js").Table} Table */
/** @typedef {import("./shapes.js").Shape} Shape */
/** @typedef {import("./diagram_map.js").Picture} Picture */
/** @typedef {import("./sweep.js").SweepTable} SweepTable */
/** @typedef {import("./sweep.js").SweepCell} SweepCell */
/** @typedef {import("./sweep.js").Ask} Ask */

const MARGIN = 12;
const TITLE_SIZE = 14;
const NOTE_SIZE = 12;

/** The cells that are shown. @param {SweepTable} table @param {Ask} ask @param {SweepCell[]} cells @returns {Table} */
export function cellTable(table, ask, cells) {
  const column = table.column(ask.color);
  const rows = cells.map((cell) => {
    const exact = [[ask.x, cell.x], ...(ask.y === null ? [] : [[ask.y, cell.y]]), ...ask.at];
    const places = exact.map(([name, value]) => table.wordOf(String(name), Number(value)));
    const [low, high] = table.interval(column, cell.rows) ?? [null, null];
    const counts = [cell.rows.length, cell.known, cell.beyond, cell.failed];
    return [...places, table.shown(column, cell.value), low, high, cell.lack, ...counts, reasonsOf(table, cell)[0]?.[0] ?? null];
  });
  const names = [ask.x, ...(ask.y === null ? [] : [ask.y]), ...ask.at.keys()];
  return { columns: [...names, ask.color, "low", "high", "lack", "runs", "with value", "beyond", "failed", "reason"], rows };
}

/**
 * A drawing that says what it shows: study, column with its unit, statistic, cuts, and what a reader must know.
 * @param {SweepTable} table
 * @param {Ask} ask
 * @param {SweepCell[]} cells
 * @param {Picture} picture
 */
export function pictureFile(table, ask, cells, picture) {
  const column = table.column(ask.color);
  const title = [`${table.data.name}: ${unitText(table, column, cells)}`, statisticText(column, cells, ask.y !== null)];
  const cut = [...ask.at].map(([name, value]) => `${name} = ${table.ruler(name).named ? table.wordOf(name, value) : short(value, 6)}`);
  const notes = [cut.join(", "), ...table.data.notes, clockNote(table, column, cells)].filter(Boolean);
  const width = picture.width - 2 * MARGIN;
  const lines = [
    ...wrapped(title.filter(Boolean).join(", "), width, TITLE_SIZE).map((text) => ({ text, size: TITLE_SIZE })),
    ...notes.flatMap((note) => wrapped(note, width, NOTE_SIZE)).map((text) => ({ text, size: NOTE_SIZE })),
  ];
  let y = MARGIN;
  const shapes = lines.map(({ text, size }) => textShape(MARGIN, (y += size + 5), text, { "font-size": size, "font-weight": size === TITLE_SIZE ? 600 : 400 }));
  const head = y + MARGIN;
  const body = /** @type {Shape} */ (["g", { transform: `translate(0 ${head})` }, picture.shapes]);
  return svgFile({ width: picture.width, height: picture.height + head, shapes: [...shapes, body] });
}
