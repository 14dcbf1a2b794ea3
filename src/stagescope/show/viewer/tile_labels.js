/** Where the names of rows and columns stand beside and below a matrix, and how much of them. */

import { brief } from "./dom.js";
import { fitted, labelWidth, LONGEST_LABEL, stride } from "./tile_text.js";

/** @typedef {{x: number, y: number, anchor: "end"|"middle", turned: boolean, text: string, of: string}} Label */

/**
 * @param {import("./types.js").MatricesView} view
 * @param {import("./tile.js").Grid} grid
 * @param {number} font px
 * @param {number} bottom room for turned names of columns
 * @returns {Label[]}
 */
export function labelsOf(view, { left, top, height, cellWidth, cellHeight }, font, bottom) {
  const each = (/** @type {string[]} */ names, /** @type {number} */ step) => names.filter((_, i) => i % step === 0);
  const down = stride(cellHeight);
  const rows = each(view.rows, down);
  const rowTexts = fitted(rows, left - 6, font);
  const flat = view.columns.every((name) => labelWidth(name, font) <= cellWidth - 3);
  const across = flat ? 1 : stride(cellWidth);
  const columns = each(view.columns, across);
  const columnTexts = flat ? columns.map((name) => brief(name, LONGEST_LABEL)) : fitted(columns, bottom - 6, font);
  return [
    ...rows.map((of, i) => {
      const y = top + (i * down + 0.5) * cellHeight + 3.5;
      return { x: left - 5, y, anchor: /** @type {const} */ ("end"), turned: false, text: rowTexts[i], of };
    }),
    ...columns.map((of, i) => {
      const x = left + (i * across + 0.5) * cellWidth;
      return flat
        ? { x, y: top + height + font + 2, anchor: /** @type {const} */ ("middle"), turned: false, text: columnTexts[i], of }
        : { x: x + 3.5, y: top + height + 5, anchor: /** @type {const} */ ("end"), turned: true, text: columnTexts[i], of };
    }),
  ];
}
