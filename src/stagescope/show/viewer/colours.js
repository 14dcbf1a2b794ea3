/**
 * Colours that hold for both themes and for colour-blind readers.
 *
 * Maps are ramps through few anchors in OKLab, so that equal steps of the scale look equally large and lightness only rises or
 * falls: a map read without hue still reads. Zero is the colour of the page: what carries nothing sinks into the paper.
 */

/** @typedef {"light"|"dark"} Theme */
/** @typedef {[number, number, number]} Lch lightness 0..1, chroma, hue in degrees (OKLCH) */

/** Colours a map has; a place is round(u (STEPS - 1)) for u in 0..1. */
export const STEPS = 255;

/** From the page's colour to the strongest, for each theme: pale yellow, green, teal, blue, violet, or the same way back.
 * @type {{light: Lch[], dark: Lch[]}} */
const SEQUENTIAL = {
  light: [[0.975, 0.012, 110], [0.88, 0.105, 122], [0.74, 0.12, 155], [0.6, 0.098, 195], [0.46, 0.098, 250], [0.33, 0.12, 285], [0.21, 0.09, 305]],
  dark: [[0.235, 0.03, 300], [0.35, 0.105, 290], [0.46, 0.105, 255], [0.58, 0.095, 205], [0.71, 0.115, 160], [0.85, 0.14, 125], [0.965, 0.12, 106]],
};

/** From the strongest negative (blue) over zero (page) to the strongest positive (orange, brown).
 * @type {{light: Lch[], dark: Lch[]}} */
const DIVERGING = {
  light: [[0.3, 0.11, 262], [0.52, 0.125, 255], [0.76, 0.085, 245], [0.975, 0.004, 90], [0.8, 0.1, 65], [0.58, 0.13, 48], [0.34, 0.09, 40]],
  dark: [[0.9, 0.07, 230], [0.7, 0.12, 245], [0.45, 0.1, 255], [0.235, 0.012, 280], [0.46, 0.1, 45], [0.72, 0.13, 60], [0.93, 0.09, 85]],
};

/** Okabe and Ito's eight, ordered by how well they stand on the page; those too faint there come last and are deepened. */
const CATEGORIES = {
  light: ["#0072b2", "#d55e00", "#009e73", "#b8578b", "#c98500", "#3a9bd9", "#8a7a00", "#3d3d3d"],
  dark: ["#56b4e9", "#e69f00", "#2cc295", "#e08fbd", "#f0e442", "#ff8a4c", "#6f9fe8", "#d8d8d8"],
};

const prefersDark = matchMedia("(prefers-color-scheme: dark)");

/** @returns {Theme} the theme of the page now */
export function themeNow() {
  const chosen = document.documentElement.dataset.theme;
  if (chosen === "light" || chosen === "dark") return chosen;
  return prefersDark.matches ? "dark" : "light";
}

/** @param {Lch} colour -> OKLab */
function lab([lightness, chroma, hue]) {
  const angle = (hue * Math.PI) / 180;
  return [lightness, chroma * Math.cos(angle), chroma * Math.sin(angle)];
}

/** @param {number} linear share of light 0..1 -> sRGB byte */
function gamma(linear) {
  const u = Math.min(1, Math.max(0, linear));
  return Math.round(255 * (u <= 0.0031308 ? 12.92 * u : 1.055 * u ** (1 / 2.4) - 0.055));
}

/**
 * OKLab -> sRGB bytes (Ottosson's matrices).
 * @param {number[]} colour
 * @returns {[number, number, number]}
 */
function rgb([lightness, a, b]) {
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    gamma(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    gamma(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    gamma(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ];
}

/**
 * A ramp of STEPS colours through equally spaced anchors.
 * @param {Lch[]} anchors
 */
function ramp(anchors) {
  const points = anchors.map(lab);
  return Array.from({ length: STEPS }, (_, i) => {
    const at = (i / (STEPS - 1)) * (points.length - 1);
    const from = Math.min(points.length - 2, Math.floor(at));
    return rgb(points[from].map((value, axis) => value + (at - from) * (points[from + 1][axis] - value)));
  });
}

/** @type {Map<string, [number, number, number][]>} */
const ramps = new Map();

/**
 * The colours of a map, lowest value first. `diverging` has zero in its middle.
 * @param {boolean} diverging
 * @param {Theme} [of]
 */
export function colourMap(diverging, of = themeNow()) {
  const name = `${diverging} ${of}`;
  let made = ramps.get(name);
  if (!made) {
    made = ramp((diverging ? DIVERGING : SEQUENTIAL)[of]);
    ramps.set(name, made);
  }
  return made;
}

/**
 * The i-th colour of a kind (curve, run, mark), most telling first; they repeat after eight.
 * @param {number} i
 * @param {Theme} [of]
 */
export function category(i, of = themeNow()) {
  return CATEGORIES[of][i % CATEGORIES[of].length];
}

/** @param {[number, number, number]} colour */
export function css([red, green, blue]) {
  return `#${((red << 16) | (green << 8) | blue).toString(16).padStart(6, "0")}`;
}

/** @param {[number, number, number]} colour as a pixel of ImageData read as a little-endian 32-bit number */
export function pixelOf([red, green, blue]) {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** @param {number} pixel as `pixelOf` makes it @returns {[number, number, number]} */
export function rgbOf(pixel) {
  return [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255];
}

const LEGIBLE = 0.179; // luminance at which black and white have the same contrast, 4.6 (WCAG 2)

/** Black or white, whichever stands out on a colour. @param {[number, number, number]} colour */
export function inkOn(colour) {
  const [red, green, blue] = colour.map((byte) => (byte <= 10 ? byte / 3294 : ((byte / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > LEGIBLE ? "#000" : "#fff";
}

/**
 * Where a value stands on its scale, 0..1. The scale is a square root from `low`, or from zero to either side if low = -high:
 * small values, where attention starts and dies, get most of the colours.
 * @param {number} value
 * @param {number} low
 * @param {number} high
 */
export function scalePlace(value, low, high) {
  if (low === -high) return 0.5 + 0.5 * Math.sign(value) * Math.sqrt(Math.min(1, Math.abs(value) / (high || 1)));
  return Math.sqrt(Math.min(1, Math.max(0, (value - low) / (high - low || 1))));
}

/** @typedef {{ink: string, muted: string, line: string, paper: string, accent: string}} Inks */

/** @type {Map<Theme, Inks>} asking the page for its styles is slow, and they change with the theme alone */
const inksOf = new Map();

/** Colours of type and lines as the page has them now, for what is drawn. @returns {Inks} */
export function inks() {
  const now = themeNow();
  let found = inksOf.get(now);
  if (!found) {
    const style = getComputedStyle(document.documentElement);
    const [ink, muted, line, paper, accent] = ["--ink", "--muted", "--line", "--paper", "--accent"].map((name) =>
      style.getPropertyValue(name).trim(),
    );
    found = { ink, muted, line, paper, accent };
    inksOf.set(now, found);
  }
  return found;
}
