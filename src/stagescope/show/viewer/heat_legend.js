/**
 * What the colours and marks of a heat map mean: the bar with its range, the scale and the precision, and the marks.
 */

import { colourMap, pixelOf, STEPS } from "./colours.js";
import { el, nameOf, short, svgEl } from "./dom.js";
import { markPath } from "./shapes.js";
import { markColour } from "./tile.js";

/** @typedef {import("./matrix.js").Matrices} Matrices */

const BAR = { sequential: 140, diverging: 220 }; // px, as in the style
const DIGIT = 6; // px

/**
 * Values named under the bar, each with its place on it. The ends are always named; a value between them where it fits.
 * @param {Matrices} matrices
 * @param {number} width px of the bar
 * @returns {[number, string][]}
 */
function barTicks({ view: { low, high }, diverging }, width) {
  /** @type {[number, string][]} */
  const between = diverging
    ? [
        [0.25, short(low / 4, 2)],
        [0.5, "0"],
        [0.75, short(high / 4, 2)],
      ]
    : [[0.5, short(low + (high - low) / 4, 3)]];
  const [first, last] = [short(low, 3), short(high, 3)];
  const reach = (/** @type {string} */ text) => (text.length * DIGIT) / 2;
  const beside = Math.max(...between.map(([, text]) => reach(text)));
  const crowded = width * between[0][0] < DIGIT * Math.max(first.length, last.length) + beside + DIGIT;
  return [[0, first], ...(crowded ? between.filter(([, text]) => text === "0") : between), [1, last]];
}

/** @param {Matrices} matrices what is said of the scale and of the numbers behind it */
function scaleText({ coded }) {
  return `square-root scale, ${coded ? "8-bit display" : "float32"}`;
}

/** @param {HTMLCanvasElement} canvas of STEPS x 1 pixels @param {boolean} diverging */
function drawBar(canvas, diverging) {
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = context.createImageData(STEPS, 1);
  new Uint32Array(image.data.buffer).set(colourMap(diverging).map(pixelOf));
  context.putImageData(image, 0, 0);
}

/** @param {number} kind @param {string} name */
function markEntry(kind, name) {
  const path = svgEl("path", { d: markPath(kind, 6, 6, 4.5) });
  const swatch = svgEl("svg", { viewBox: "0 0 12 12", width: 12, height: 12, "aria-hidden": "true" }, path);
  const colour = () => void (path.style.fill = markColour(kind));
  colour();
  return { element: el("span", { class: "legend-key" }, [swatch, nameOf(name, 40)]), colour };
}

/**
 * The legend of matrices that share a range and marks.
 * @param {Matrices} matrices
 */
export function heatLegend(matrices) {
  const bar = el("canvas", {
    class: "heat-bar",
    width: STEPS,
    height: 1,
    role: "img",
    "aria-label": `colours from ${short(matrices.view.low)} to ${short(matrices.view.high)}`,
  });
  const numbers = barTicks(matrices, matrices.diverging ? BAR.diverging : BAR.sequential).map(([at, text]) => {
    const tick = el("span", { text });
    tick.style.left = `${at * 100}%`;
    return tick;
  });
  const marks = (matrices.view.marks?.names ?? []).map((name, kind) => markEntry(kind, name));
  const missing = el("span", { class: "legend-key", hidden: true }, [el("i", { class: "hatched" }), "no finite number"]);
  const { row_axis, column_axis } = matrices.view;
  const axes = el("span", { class: "axes" }, [
    ...(row_axis ? [nameOf(row_axis, 40), " \u2193\u2002"] : []),
    ...(column_axis ? [nameOf(column_axis, 40), " \u2192"] : []),
  ]);
  const scale = el("span", { class: "scale" }, [
    el("span", { class: matrices.diverging ? "bar-box wide" : "bar-box" }, [bar, el("span", { class: "bar-ticks" }, numbers)]),
    el("span", { class: "scale-text", text: scaleText(matrices) }),
  ]);
  const small = el("span", {
    class: "legend-key",
    hidden: true,
    text: "(cells are too small for marks here: enlarge a map, or hover)",
  });
  const kinds = el("div", { class: "heat-kinds" }, [...marks.map((mark) => mark.element), small, missing]);
  const element = el("div", { class: "heat-legend" }, [el("div", { class: "heat-scale" }, [scale, axes]), kinds]);
  const recolour = () => {
    drawBar(bar, matrices.diverging);
    for (const mark of marks) mark.colour();
  };
  recolour();
  return {
    element,
    recolour,
    missing: (/** @type {boolean} */ some) => void (missing.hidden = !some),
    unmarked: (/** @type {boolean} */ some) => void (small.hidden = !some),
  };
}
