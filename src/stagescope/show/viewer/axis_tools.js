/** Switches of the axes of plots. */

import { el } from "./dom.js";

/** @typedef {import("./clock.js").Scene} Scene */
/** @typedef {import("./state.js").Settings} Settings */

/**
 * Linear or logarithmic values, where logarithms make sense; the switch of time is on the first plot and turns all of them.
 * @param {Scene} scene
 * @param {import("./lines.js").RunCurves[]} views
 * @returns {HTMLElement|undefined}
 */
export function axisTools(scene, views) {
  const { settings, clock, runs } = scene;
  const { slot } = views[0].view;
  const first = runs.flatMap(({ data }) => data.views).find(({ kind }) => kind === "curves");
  const parts = [];
  if (views.some(({ view }) => view.log)) {
    const set = (/** @type {string} */ value) => settings.setLog(slot, value === "log");
    parts.push(chooser("values", ["linear", "log"], () => (scene.isLog(slot) ? "log" : "linear"), set, settings));
  }
  if (first?.slot === slot) {
    const { kinds } = scene.scale;
    const word = clock === "step" ? "step" : "time";
    const names = kinds.map((kind) => ({ time: word, log: `log ${word}`, change: "by change" })[kind]);
    const set = (/** @type {string} */ value) => settings.set("axis", kinds[names.indexOf(value)]);
    parts.push(chooser("horizontal axis", names, () => names[kinds.indexOf(scene.scale.kind)], set, settings));
  }
  return parts.length ? el("div", { class: "tools" }, parts) : undefined;
}

/**
 * A row of buttons of which one is pressed.
 * @param {string} what
 * @param {string[]} names
 * @param {() => string} present
 * @param {(name: string) => void} choose
 * @param {Settings} settings
 */
function chooser(what, names, present, choose, settings) {
  const buttons = names.map((name) => el("button", { type: "button", text: name, on: { click: () => choose(name) } }));
  const show = () => buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(names[i] === present())));
  settings.on(show);
  show();
  return el("div", { class: "chooser", role: "group", "aria-label": what }, buttons);
}
