/** The playground inside a notebook, as an anywidget. Its options and curves are told to Python. */

import { el } from "./dom.js";
import { Playground } from "./play_ground.js";

/** @typedef {{get: (name: string) => any, set: (name: string, value: any) => void, save_changes: () => void,
 *   on: (name: string, called: () => void) => void}} WidgetModel */

/** Whether the notebook around is dark. */
function darkNotebook() {
  const light = document.body.dataset.jpThemeLight;
  return light === undefined ? matchMedia("(prefers-color-scheme: dark)").matches : light === "false";
}

/** @param {{model: WidgetModel, el: HTMLElement}} place */
export function renderPlay({ model, el: place }) {
  const root = place.attachShadow({ mode: "open" });
  place.dataset.lmSuppressShortcuts = "true"; // else JupyterLab takes the arrow keys of the sliders for its own
  const box = el("div", { class: "play-widget", data: { theme: darkNotebook() ? "dark" : "light" } });
  const ground = new Playground(model.get("_data"), /** @type {any} */ (globalThis).stagescopeLaws, () => tellPython(model, ground));
  box.append(ground.element);
  root.append(el("style", { text: model.get("_style") }), box);
  take(model, ground);
  model.on("change:options", () => {
    if (JSON.stringify(model.get("options")) !== JSON.stringify(ground.settings.options)) take(model, ground);
  });
}

/** Options as Python has set them. @param {WidgetModel} model @param {Playground} ground */
function take(model, ground) {
  const known = ground.settings.options;
  const wanted = Object.entries(model.get("options")).filter(([name]) => name in known);
  ground.settings.options = { ...known, ...Object.fromEntries(wanted) };
  ground.settings.settle(null);
  ground.move();
}

/** Options at every move; events and curves once they rest. @param {WidgetModel} model @param {Playground} ground */
function tellPython(model, ground) {
  const { played, law, settings } = ground;
  if (!played || !law) return;
  model.set("options", settings.options);
  model.set("command", settings.command());
  if (ground.difference) {
    const names = law.panels.slice(1).flatMap(({ slot, curves }) => curves.map((name) => `${slot}/${name}`));
    const arrays = { t: played.time, loss: played.loss, ...Object.fromEntries(names.map((name, i) => [name, played.curves[i]])) };
    model.set("events", Object.fromEntries(played.events.map(({ name, time }) => [name, time])));
    model.set("tolerance", played.tolerance);
    model.set("_arrays", Object.fromEntries(Object.entries(arrays).map(([name, values]) => [name, new DataView(values.slice().buffer)])));
  }
  model.save_changes();
}
