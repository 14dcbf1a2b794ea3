/** The sliders of a playground: each a range, a number to type, and a way back to the preset. */

import { el, setText, short } from "./dom.js";
import { positionOfValue, positionsOf, valueAtPosition } from "./play_options.js";

/** @typedef {import("./play_options.js").PlayOptions} PlayOptions */
/** @typedef {import("./play_types.js").SliderData} SliderData */
/** @typedef {{slider: SliderData, range: HTMLInputElement, number: HTMLInputElement, back: HTMLButtonElement, row: HTMLElement}} Control */

export class PlayControls {
  /** @param {(option: string) => void} moved @param {(preset: string) => void} preset chosen */
  constructor(moved, preset) {
    this.moved = moved;
    this.choose = preset;
    this.element = el("div", { class: "play-controls", role: "group", "aria-label": "options" });
    this.about = el("p", { class: "play-about", "aria-live": "off" });
    /** @type {Control[]} */
    this.controls = [];
    this.layout = "";
  }

  /** Shows what is set; the sliders are made anew only where others are there. @param {PlayOptions} settings */
  show(settings) {
    this.settings = settings;
    const layout = JSON.stringify([settings.study.name, settings.sliders]);
    if (layout !== this.layout) this.build(settings);
    this.layout = layout;
    if (this.presets) this.presets.value = settings.preset;
    for (const control of this.controls) this.place(control, settings);
  }

  /** @param {PlayOptions} settings */
  build(settings) {
    const { study } = settings;
    const names = Object.keys(study.presets).map((name) => el("option", { value: name, text: name }));
    this.presets = el("select", { class: "play-select", on: { change: () => this.choose(this.presets?.value ?? "") } }, names);
    this.controls = settings.sliders.map((slider) => this.control(slider, settings));
    const rows = (/** @type {boolean} */ more) => this.controls.filter(({ slider }) => slider.more === more).map(({ row }) => row);
    const folded = rows(true);
    this.element.replaceChildren(
      el("label", { class: "play-preset" }, [el("span", { text: "Start from the preset" }), this.presets]),
      ...rows(false),
      ...(folded.length ? [el("details", { class: "play-more" }, [el("summary", { text: `${folded.length} more options` }), ...folded])] : []),
      this.about,
    );
    this.explain(settings.sliders[0].option);
  }

  /** @param {SliderData} slider @param {PlayOptions} settings @returns {Control} */
  control(slider, settings) {
    const { option, low, high, whole } = slider;
    const name = titleOf(option);
    const common = { "aria-label": name, on: { focus: () => this.explain(option) } };
    const range = el("input", { type: "range", class: "slider", min: 0, max: positionsOf(slider), step: 1, data: { option }, ...common });
    const number = el("input", { type: "number", class: "play-number", min: low, max: high, step: whole ? 1 : "any", ...common, "aria-label": `${name}, number` });
    const back = el("button", { type: "button", class: "play-back", text: "\u21ba", title: `${name} as in the preset`, "aria-label": `${name} as in the preset` });
    range.addEventListener("input", () => this.give(option, valueAtPosition(slider, Number(range.value))));
    number.addEventListener("change", () => {
      const value = number.value === "" ? NaN : Number(number.value);
      if (Number.isFinite(value)) this.give(option, value, slider);
      else this.place({ slider, range, number, back, row }, settings);
    });
    back.addEventListener("click", () => {
      this.settings?.reset(option);
      this.moved(option);
    });
    const row = el("div", { class: "play-row" }, [el("span", { class: "play-name", text: name, "aria-hidden": "true" }), number, back, range]);
    return { slider, range, number, back, row };
  }

  /** @param {string} option @param {number} value @param {SliderData} [typed] the slider beside which it was typed */
  give(option, value, typed) {
    if (typed) this.settings?.type(typed, value);
    else this.settings?.set(option, value);
    this.explain(option);
    this.moved(option);
  }

  /** @param {Control} control @param {PlayOptions} settings */
  place({ slider, range, number, back }, settings) {
    const { option, low, like } = slider;
    const value = settings.get(option);
    const preset = settings.get(option, settings.presetOptions(settings.preset));
    const text = like ? `as ${titleOf(like)}` : "not set";
    const position = positionOfValue(slider, value ?? (like ? settings.get(like) : null) ?? low);
    if (Number(range.value) !== position) range.value = String(position);
    range.setAttribute("aria-valuetext", value === null ? text : short(value, 4));
    number.value = value === null ? "" : String(value);
    number.placeholder = value === null ? text : "";
    back.style.visibility = value === preset ? "hidden" : "visible";
  }

  /** @param {string} option */
  explain(option) {
    const stem = option.split(".")[0];
    const said = stem === "seed" ? "which random start; the numbers are those of Python" : this.settings?.study.about[stem] ?? "";
    setText(this.about, `${titleOf(option)}: ${said}`);
  }
}

/** "pi.0" is pi 0, "init_scale" is init scale. @param {string} option */
function titleOf(option) {
  const [stem, place] = option.split(".");
  return stem.replaceAll("_", " ") + (place === undefined ? "" : ` ${Number(place)}`);
}
