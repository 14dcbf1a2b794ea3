/**
 * Elements and numbers. Names and tokens of a run are text of strangers: they enter the page only through `textContent` and
 * through attributes that hold no code, inside <bdi>, so that marks of direction end where the name ends.
 */

/** How much of a long string is shown, and how much its tooltip holds. */
const SHOWN = 300;
const TOOLTIP = 2000;

/**
 * Text with every lone surrogate replaced, so that it can be drawn and serialised.
 * @param {unknown} text
 */
export function clean(text) {
  return String(text).replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd");
}

/**
 * The text as shown: at most `limit` characters, with an ellipsis where some are missing.
 * @param {unknown} text
 */
export function brief(text, limit = SHOWN) {
  const whole = clean(text);
  return whole.length > limit ? clean(whole.slice(0, limit - 1)) + "\u2026" : whole;
}

/**
 * @typedef {Element|string|null|undefined} Child
 * @typedef {{class?: string|null, text?: unknown, title?: unknown, data?: Object<string, string|number>,
 *   on?: Object<string, (event: any) => void>, [attribute: string]: unknown}} Properties
 *   `on` holds listeners, `data` the data-* attributes; every other name is an attribute (true: present, false or null: absent).
 */

/** @param {Element} node @param {Properties} properties @param {Child|Child[]} children */
function dress(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "style" || /^on./.test(name)) throw new Error(`${name} is code, not an attribute: use element.style or on: {}`);
    if (name === "text") node.textContent = clean(value);
    else if (name === "title") node.setAttribute("title", brief(value, TOOLTIP));
    else if (name === "data") {
      for (const [key, item] of Object.entries(/** @type {Object<string, unknown>} */ (value)))
        node.setAttribute(`data-${key}`, clean(item));
    } else if (name === "on") {
      const listeners = /** @type {Object<string, (event: any) => void>} */ (value);
      for (const [event, listener] of Object.entries(listeners)) node.addEventListener(event, listener);
    } else node.setAttribute(name, value === true ? "" : clean(value));
  }
  for (const child of Array.isArray(children) ? children : [children]) {
    if (child) node.append(typeof child === "string" ? clean(child) : child);
  }
}

/**
 * A new element. Strings among the children become text.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Properties} properties
 * @param {Child|Child[]} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(tag, properties = {}, children = []) {
  const node = document.createElement(tag);
  dress(node, properties, children);
  return node;
}

/**
 * A new SVG element.
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Properties} properties
 * @param {Child|Child[]} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function svgEl(tag, properties = {}, children = []) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  dress(node, properties, children);
  return node;
}

/**
 * A name from the data: isolated in direction, shortened, and whole (up to 2,000 characters) in its tooltip.
 * @param {unknown} text
 */
export function nameOf(text, limit = SHOWN) {
  const shown = brief(text, limit);
  return el("bdi", { text: shown, title: shown === clean(text) ? null : text });
}

/**
 * Sets the text of a node only if it changed: a write that changes nothing still costs a layout.
 * @param {Element} node
 * @param {string} text
 */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** @param {number} n A count with thousands marked: 12,000. */
export function count(n) {
  return String(n).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** @param {string} text ASCII number -> with a true minus sign and a power of ten in superscript. */
function typeset(text) {
  const [mantissa, exponent] = text.split("e");
  if (exponent === undefined) return mantissa.replace("-", "\u2212");
  const digits = exponent
    .replace("+", "")
    .replace("-", "\u207b")
    .replace(/\d/g, (d) => "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"[+d]);
  return `${mantissa.replace("-", "\u2212")}\u00b710${digits}`;
}

/**
 * A number to read: `digits` significant digits, trailing zeros kept off. null is a dash; NaN and infinities are named.
 * @param {number|null|undefined} value
 */
export function short(value, digits = 4) {
  if (value === null || value === undefined) return "\u2013";
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "\u221e" : "\u2212\u221e";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 && Number.isInteger(value) && size < 1e9) return count(value).replace("-", "\u2212");
  const exact = value.toPrecision(digits);
  if (size >= 1e-3 && size < 1e5) return typeset(String(Number(exact)));
  const [mantissa, exponent] = Number(exact).toExponential().split("e");
  return typeset(`${mantissa}e${exponent}`);
}

/**
 * Every digit of a number, as needed to read the same number back.
 * @param {number|null|undefined} value
 */
export function full(value) {
  return value === null || value === undefined ? "none" : String(value);
}

/**
 * A time with its name: "t = 3.4", "step 120".
 * @param {string} clock
 * @param {number} time
 */
export function clockText(clock, time) {
  return clock === "step" ? `step ${short(time, 6)}` : `${clock} = ${short(time, 5)}`;
}
