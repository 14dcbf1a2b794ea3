/** Drawings as data: a list of shapes that becomes nodes of the page, or ink on a canvas. */

import { clean, svgEl } from "./dom.js";
import { inks } from "./colours.js";

/**
 * @typedef {Object<string, string|number>} Attributes
 * @typedef {[tag: "path"|"rect"|"circle"|"line"|"text"|"g", attributes: Attributes, inner?: string|Shape[]]} Shape
 */

export const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";

/** @param {number} value to a hundredth: paths stay short and lines stay where they are */
export function round(value) {
  return Math.round(value * 100) / 100;
}

/** @param {Shape} shape @returns {SVGElement} */
export function svgNode([tag, attributes, inner = ""]) {
  return svgEl(tag, { ...attributes }, typeof inner === "string" ? inner : inner.map(svgNode));
}

/**
 * @param {number} x
 * @param {number} y baseline
 * @param {string} text
 * @param {Object<string, string|number>} [attributes]
 * @returns {Shape}
 */
export function textShape(x, y, text, attributes = {}) {
  return ["text", { x, y, fill: inks().ink, ...attributes }, text];
}

/** Outlines of marks, told apart by shape before colour: triangle, disc, square, diamond. @type {((x: number, y: number, r: number) => string)[]} */
const OUTLINES = [
  (x, y, r) => `M${x} ${y - r}L${x + r} ${y + 0.8 * r}L${x - r} ${y + 0.8 * r}Z`,
  (x, y, r) => `M${x - 0.9 * r} ${y}A${0.9 * r} ${0.9 * r} 0 1 0 ${x + 0.9 * r} ${y}A${0.9 * r} ${0.9 * r} 0 1 0 ${x - 0.9 * r} ${y}Z`,
  (x, y, r) => `M${x - 0.8 * r} ${y - 0.8 * r}h${1.6 * r}v${1.6 * r}h${-1.6 * r}Z`,
  (x, y, r) => `M${x} ${y - r}L${x + r} ${y}L${x} ${y + r}L${x - r} ${y}Z`,
];

/**
 * The path of a mark of some kind around a point.
 * @param {number} kind
 * @param {number} x
 * @param {number} y
 * @param {number} r
 */
export function markPath(kind, x, y, r) {
  return OUTLINES[kind % OUTLINES.length](x, y, r);
}

/**
 * Draws shapes on a canvas as an SVG of them would look. Groups, and turns other than that of `turnedShape`, are not known.
 * @param {CanvasRenderingContext2D} context
 * @param {Shape[]} shapes
 */
export function drawShapes(context, shapes) {
  for (const [tag, attributes, inner] of shapes) {
    const number = (/** @type {string} */ name, otherwise = 0) => Number(attributes[name] ?? otherwise);
    context.globalAlpha = number("opacity", 1);
    context.fillStyle = String(attributes.fill ?? "#000");
    if (tag === "rect") context.fillRect(number("x"), number("y"), number("width"), number("height"));
    else if (tag === "text") drawText(context, attributes, String(inner));
    else {
      const path = new Path2D(
        tag === "line" ? `M${attributes.x1} ${attributes.y1}L${attributes.x2} ${attributes.y2}` : String(attributes.d),
      );
      context.lineWidth = number("stroke-width", 1);
      context.strokeStyle = String(attributes.stroke);
      if (attributes.fill !== "none" && tag !== "line") context.fill(path);
      if (attributes.stroke) context.stroke(path);
    }
  }
  context.globalAlpha = 1;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Object<string, string|number>} attributes
 * @param {string} text
 */
function drawText(context, attributes, text) {
  const [x, y] = [Number(attributes.x), Number(attributes.y)];
  context.font = `${attributes["font-weight"] ?? 400} ${attributes["font-size"] ?? 11}px ${FONT}`;
  context.textAlign = attributes["text-anchor"] === "middle" ? "center" : attributes["text-anchor"] === "end" ? "right" : "left";
  if (!attributes.transform) return context.fillText(text, x, y);
  context.save();
  context.translate(x, y);
  context.rotate(-Math.PI / 2);
  context.fillText(text, 0, 0);
  context.restore();
}

/**
 * Text that reads upwards from a point.
 * @param {number} x
 * @param {number} y
 * @param {string} text
 * @param {Object<string, string|number>} [attributes]
 * @returns {Shape}
 */
export function turnedShape(x, y, text, attributes = {}) {
  return textShape(x, y, text, { ...attributes, transform: `rotate(-90 ${round(x)} ${round(y)})` });
}

/** @param {number} size of the type, px */
function penOf(size) {
  const pen = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
  pen.font = `${size}px ${FONT}`;
  return pen;
}

/** How wide a text is. @param {string} text @param {number} size of the type, px */
export function measured(text, size) {
  return penOf(size).measureText(clean(text)).width;
}

/**
 * Names in lines. Of what is too long the middle is left out, because lists of stages differ in their ends; where that makes
 * two the same, each has its number.
 * @param {string[]} names
 * @param {number} width px
 * @param {number} size of the type, px
 * @param {number} most lines
 * @returns {string[][]}
 */
export function toldApart(names, width, size, most) {
  const fold = (/** @type {string} */ name) => {
    for (let half = Math.ceil(name.length / 2); half > 4; half = Math.floor(half * 0.9)) {
      const [first, last] = [name.slice(0, half).replace(/\s\S*$/, ""), name.slice(-half).replace(/^\S*\s/, "")]; // whole words
      const text = 2 * half >= name.length ? name : `${first} \u2026 ${last}`;
      const lines = wrapped(text, width, size, Infinity);
      if (lines.length <= most) return lines;
    }
    return wrapped(name, width, size, most);
  };
  const found = names.map(fold);
  const same = (/** @type {number} */ i) => found.filter((lines) => lines.join(" ") === found[i].join(" ")).length > 1;
  return found.map((lines, i) => (same(i) ? fold(`${i + 1}. ${names[i]}`) : lines));
}

/**
 * Text in lines that fit a width; a word that is longer than a line is cut.
 * @param {string} text
 * @param {number} width px
 * @param {number} size of the type, px
 * @param {number} most lines; the last ends with an ellipsis if more would follow
 */
export function wrapped(text, width, size, most = 6) {
  const pen = penOf(size);
  const fits = (/** @type {string} */ line) => pen.measureText(line).width <= width;
  const lines = [""];
  for (const word of clean(text).split(/\s+/)) {
    const longer = `${lines[lines.length - 1]} ${word}`.trim();
    if (fits(longer)) lines[lines.length - 1] = longer;
    else lines.push(word);
    const last = lines[lines.length - 1];
    let end = last.length;
    while (end > 1 && !fits(last.slice(0, end))) end = Math.floor(end * 0.9);
    if (end < last.length) lines[lines.length - 1] = `${last.slice(0, end - 1)}\u2026`;
  }
  const shown = lines.filter(Boolean);
  return shown.length > most ? [...shown.slice(0, most - 1), `${shown[most - 1]} \u2026`] : shown;
}
