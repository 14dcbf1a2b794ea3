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
  const box = el("div", { class: "play-widget", data: { theme: darkNotebook() ? "dark" : "light" } });
  const ground = new Playground(model.get("_data"), /** @type {any} */ (globalThis).stagescopeLaws, () => tell(model, ground));
  box.append(ground.element);
  root.append(el("style", { text: model.get("_style") }), box);
  const given = model.get("options") ?? {};
  if (given.study) ground.useStudy(given.study);
  for (const [name, value] of Object.entries(given)) if (name in ground.settings.options) ground.settings.options[name] = value;
  ground.settings.settle(null);
  ground.move();
  model.on("change:options", () => follow(model, ground));
  return () => ground.controls.element.remove();
}

/** @param {WidgetModel} model @param {Playground} ground */
function tell(model, ground) {
  const { played, law, settings } = ground;
  if (!played || !law) return;
  const names = law.panels.slice(1).flatMap(({ slot, curves }) => curves.map((name) => `${slot}/${name}`));
  const arrays = { t: played.time, loss: played.loss, ...Object.fromEntries(names.map((name, i) => [name, played.curves[i]])) };
  model.set("options", { study: settings.study.name, ...settings.options });
  model.set("command", settings.command());
  model.set("events", Object.fromEntries(played.events.map(({ name, time }) => [name, time])));
  model.set("tolerance", played.tolerance);
  model.set("_arrays", Object.fromEntries(Object.entries(arrays).map(([name, values]) => [name, new DataView(values.slice().buffer)])));
  model.save_changes();
}

/** Python has set options. @param {WidgetModel} model @param {Playground} ground */
function follow(model, ground) {
  const wanted = model.get("options");
  const known = { study: ground.settings.study.name, ...ground.settings.options };
  if (JSON.stringify(wanted) === JSON.stringify(known)) return;
  const fitting = Object.entries(wanted).filter(([name]) => name in ground.settings.options);
  Object.assign(ground.settings.options, Object.fromEntries(fitting));
  ground.settings.settle(null);
  ground.move();
}
