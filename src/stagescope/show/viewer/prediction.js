/** What was predicted from the start of each run, without the run: its events with intervals, beside those that came. */

import { clockText, el, nameOf, short } from "./dom.js";

/** @typedef {import("./types.js").Panel} Panel */
/** @typedef {import("./types.js").PredictedEvent} PredictedEvent */
/** @typedef {import("./clock.js").Scene} Scene */

const EVENT_HEADS = ["event", "predicted", "interval", "measured", "ratio", ""];
const EVENT_DIGITS = 5; // of times: predictions are right to four

/** @param {Scene} scene @param {PredictedEvent} event */
function predictedRow(scene, { name, t, low, high, measured, said }) {
  const to = measured ?? t;
  const last = scene.times[scene.times.length - 1];
  const jump = () => {
    if (to === null) return;
    scene.goTime(to);
    scene.mark(t !== null && measured !== null ? [Math.min(t, measured), Math.max(t, measured)] : null);
  };
  const head =
    to === null || to > last
      ? el("span", {}, nameOf(name, 40))
      : el("button", { type: "button", class: "jump", title: `go to ${clockText(scene.clock, to)}`, on: { click: jump } }, nameOf(name, 40));
  const cells = [
    short(t, EVENT_DIGITS),
    low === null || high === null ? null : `${short(low, EVENT_DIGITS)} to ${short(high, EVENT_DIGITS)}`,
    short(measured, EVENT_DIGITS),
    t === null || measured === null ? null : short(measured / t, 4),
  ];
  return el("tr", { class: "leads" }, [
    el("th", { scope: "row" }, head),
    ...cells.map((text, i) => el("td", { class: "number", text: text ?? "\u2013", data: { label: EVENT_HEADS[i + 1] } })),
    el("td", { class: "said" }, nameOf(said, 300)),
  ]);
}

/**
 * The predictions of all runs of a scene; null if nothing was predicted.
 * @param {Scene} scene
 * @returns {Panel|null}
 */
export function predictionPanel(scene) {
  const parts = scene.runs.flatMap(({ data }) => {
    if (!data.prediction?.length) return [];
    const heads = EVENT_HEADS.map((text, i) => el("th", { scope: "col", class: i && i < EVENT_HEADS.length - 1 ? "number" : "", text }));
    const rows = data.prediction.map((event) => predictedRow(scene, event));
    const table = el("table", { class: "ladder-table" }, [el("thead", {}, el("tr", {}, heads)), el("tbody", {}, rows)]);
    const name = scene.runs.length > 1 ? el("h3", {}, nameOf(data.name, 60)) : null;
    return [el("div", { class: "ladder-run" }, [name, el("div", { class: "scroll" }, table)])];
  });
  return parts.length ? { element: el("div", { class: "ladder" }, parts), show: () => {} } : null;
}
