/** The small figure of a claim over several runs: a dot for what each run shows, a ring for what is predicted for it. */

import { brief, short, svgEl } from "./dom.js";

/** @typedef {import("./types.js").OverRuns} OverRuns */

const OVER_BOX = { width: 340, height: 150, left: 54, right: 8, top: 8, bottom: 34 };

/**
 * The ends of an axis around some numbers, with a little air, and the place of a number on it from 0 to 1.
 * @param {(number|null)[]} values
 * @param {boolean} log
 */
function overScale(values, log) {
  const onAxis = values.flatMap((value) => (value === null ? [] : [log ? Math.log(value) : value]));
  const [least, most] = onAxis.length ? [Math.min(...onAxis), Math.max(...onAxis)] : [0, 1];
  const air = 0.08 * (most - least) || 0.05 * Math.abs(most) || 0.5;
  const ends = [least - air, most + air];
  const written = [least, most].map((end) => (log ? Math.exp(end) : end));
  const at = (/** @type {number} */ value) => ((log ? Math.log(value) : value) - ends[0]) / (ends[1] - ends[0]);
  return { written: written[0] === written[1] ? [written[0]] : written, at };
}

/**
 * @param {OverRuns|null|undefined} over
 * @returns {SVGElement|null} null where the claim is about one run
 */
export function overRunsFigure(over) {
  if (!over || !over.x.length) return null;
  const { width, height, left, right, top, bottom } = OVER_BOX;
  const across = overScale(over.x, over.log_x);
  const up = overScale([...over.measured, ...over.predicted], over.log_y);
  const x = (/** @type {number} */ value) => left + across.at(value) * (width - left - right);
  const y = (/** @type {number} */ value) => height - bottom - up.at(value) * (height - top - bottom);
  const dots = (/** @type {(number|null)[]} */ values, /** @type {string} */ style, /** @type {number} */ r, /** @type {string} */ word) =>
    values.flatMap((value, i) => {
      if (value === null) return [];
      const name = over.names[i] ? `${brief(over.names[i], 60)}, ` : "";
      const text = `${name}${brief(over.x_axis, 60)} ${short(over.x[i])}: ${word} ${short(value)}`;
      return [svgEl("circle", { class: style, cx: x(over.x[i]), cy: y(value), r }, svgEl("title", { text }))];
    });
  const order = over.predicted.flatMap((value, i) => (value === null ? [] : [i])).sort((a, b) => over.x[a] - over.x[b]);
  const law = order.map((i) => `${x(over.x[i])},${y(/** @type {number} */ (over.predicted[i]))}`).join(" ");
  const foot = height - bottom + 13;
  const label = `${brief(over.y_axis, 80)} over ${brief(over.x_axis, 80)}: ${over.x.length} runs`;
  return svgEl("svg", { class: "over-runs", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, [
    svgEl("rect", { class: "frame", x: left, y: top, width: width - left - right, height: height - top - bottom }),
    svgEl("polyline", { class: "law", points: law }),
    ...dots(over.predicted, "said", 5, "predicted"),
    ...dots(over.measured, "seen-in-run", 3, "measured"),
    ...across.written.map((value) => svgEl("text", { x: x(value), y: foot, "text-anchor": "middle", text: short(value, 3) })),
    ...up.written.map((value) => svgEl("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end", text: short(value, 3) })),
    svgEl("text", { x: (left + width - right) / 2, y: height - 5, "text-anchor": "middle", text: brief(over.x_axis, 60) }),
    svgEl("text", {
      x: 0, y: 0, "text-anchor": "middle", transform: `translate(11 ${(top + height - bottom) / 2}) rotate(-90)`,
      text: brief(over.y_axis, 40),
    }),
  ]);
}
