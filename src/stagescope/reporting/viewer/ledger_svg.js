/** The ledger as a drawing, for a file. */

import { category, inks } from "./colours.js";
import { brief } from "./dom.js";
import { textShape, wrapped } from "./shapes.js";
import { cellText, verdictKind } from "./verdicts.js";

/** @typedef {import("./types.js").Verdict} Verdict */
/** @typedef {import("./shapes.js").Shape} Shape */
/** @typedef {import("./shapes.js").Drawing} Drawing */
/** @typedef {{tag: string, statement: string, entries: {run: number, verdict: Verdict}[]}} DrawnClaim */

const LEAST = 820; // px across
const LINE_HEIGHT = 15;

/** Colours of verdicts by the style that names them. */
const VERDICT_COLOURS = () => ({
  "is-confirmed": category(2),
  "is-violated": category(1),
  "is-inconclusive": category(4),
  "is-not-applicable": inks().muted,
});

/**
 * @param {DrawnClaim[]} claims
 * @param {string[]|null} names of the runs, if there are several
 * @param {number} room px
 * @returns {Drawing}
 */
export function ledgerDrawing(claims, names, room) {
  const width = Math.max(LEAST, room);
  const ink = inks();
  const columns = [width - 240, width - 130, width - 20]; // right ends of predicted, measured, tolerance
  const small = { "font-size": 10.5, fill: ink.muted };
  /** @type {Shape[]} */
  const shapes = ["predicted", "measured", "tolerance"].map((text, i) =>
    textShape(columns[i], 18, text, { ...small, "text-anchor": "end" }),
  );
  let y = 28;
  for (const { tag, statement, entries } of claims) {
    shapes.push(["line", { x1: 12, x2: width - 12, y1: y, y2: y, stroke: ink.line }]);
    y += 20;
    for (const line of wrapped(`${statement}  [${tag}]`, columns[0] - 220, 12)) {
      shapes.push(textShape(132, y, line, { "font-size": 12, "font-weight": 600 }));
      y += LINE_HEIGHT;
    }
    if (!names) y -= LINE_HEIGHT;
    for (const { run, verdict } of entries) y = verdictShapes(shapes, verdict, names ? names[run] : null, columns, y) + 4;
    y += 6;
  }
  return { width, height: y + 8, shapes };
}

/**
 * Adds the row of one run; returns where the next may begin.
 * @param {Shape[]} shapes
 * @param {Verdict} verdict
 * @param {string|null} name
 * @param {number[]} columns
 * @param {number} y
 */
function verdictShapes(shapes, verdict, name, columns, y) {
  const { symbol, style } = verdictKind(verdict.verdict);
  const colours = /** @type {Object<string, string>} */ (VERDICT_COLOURS());
  shapes.push(textShape(14, y, `${symbol}  ${verdict.verdict}`, { fill: colours[style], "font-weight": 600 }));
  [verdict.predicted, verdict.measured, verdict.tolerance].forEach((cell, i) => {
    shapes.push(textShape(columns[i], y, cellText(cell, 16), { "text-anchor": "end" }));
  });
  if (name) shapes.push(textShape(132, y, brief(name, 60)));
  let below = y + LINE_HEIGHT;
  for (const line of wrapped(verdict.reason, columns[0] - 220, 10.5)) {
    shapes.push(textShape(132, below, line, { "font-size": 10.5, fill: inks().muted }));
    below += LINE_HEIGHT;
  }
  return below;
}
