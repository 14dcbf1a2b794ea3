/**
 * What is set in a playground: a preset and what differs from it; as sliders, as the address, as a command, as a file.
 *
 * The address is text of a stranger: what is unknown or out of range is set right, with a sentence.
 */

import { TOOLS } from "./play_flow.js";

/** @typedef {import("./play_types.js").PlayStudy} PlayStudy */
/** @typedef {import("./play_types.js").SliderData} SliderData */
/** @typedef {import("./play_types.js").Given} Given */
/** @typedef {import("./play_types.js").PaperLaw} PaperLaw */

const DIGITS = 3; // of a value on a logarithmic slider

/** The settings of one study. */
export class PlayOptions {
  /** @param {PlayStudy} study @param {PaperLaw} law */
  constructor(study, law) {
    this.study = study;
    this.law = law;
    this.preset = study.start.preset;
    /** @type {Given} */
    this.options = {};
    /** @type {string[]} what was set right */
    this.notes = [];
    /** Lowest values that the other options allow. @type {Object<string, number>} */
    this.least = {};
    this.usePreset(this.preset);
    Object.assign(this.options, study.start.options);
  }

  /** Options of a preset, with its own end of the flow and the first seed. @param {string} name @returns {Given} */
  presetOptions(name) {
    const { options, until } = this.study.presets[name];
    return { ...structuredClone(options), until, seed: 0 };
  }

  /** @param {string} name */
  usePreset(name) {
    this.preset = name;
    this.options = this.presetOptions(name);
    this.notes = [];
  }

  /** The sliders that these options have, one for each element of a list. @returns {SliderData[]} */
  get sliders() {
    return this.study.sliders
      .filter(({ where }) => Object.entries(where).every(([name, given]) => Boolean(this.options[name]) === given))
      .flatMap((slider) => {
        if (!slider.option.endsWith(".*")) return [slider];
        const stem = slider.option.slice(0, -2);
        return this.options[stem].map((/** @type {number} */ _, /** @type {number} */ i) => ({ ...slider, option: `${stem}.${i}` }));
      });
  }

  /** @param {string} option such as "pi.0" @param {Given} [among] @returns {number|null} */
  get(option, among = this.options) {
    const [stem, place] = option.split(".");
    const value = among[stem];
    return place === undefined ? value : (value?.[Number(place)] ?? null);
  }

  /** Sets an option and what must follow from it. @param {string} option @param {number|null} value */
  set(option, value) {
    this.put(option, value);
    this.settle(option);
  }

  /** @param {string} option @param {number|null} value */
  put(option, value) {
    const [stem, place] = option.split(".");
    this.options = { ...this.options };
    if (place === undefined) this.options[stem] = value;
    else this.options[stem] = this.options[stem].map((/** @type {number} */ x, /** @type {number} */ i) => (i === Number(place) ? value : x));
  }

  /** @param {string|null} moved */
  settle(moved) {
    const { options, notes, least = {} } = this.law.settle(this.options, moved, TOOLS);
    this.options = options;
    this.notes = notes;
    this.least = least;
  }

  /** A number that was typed: set as near as it can be, with a sentence where that is another one. @param {SliderData} slider @param {number} value */
  type({ option, low, high, whole }, value) {
    this.set(option, TOOLS.within(whole ? Math.round(value) : value, low, high));
    if (this.get(option) !== value) this.notes = [this.setRight(option, value), ...this.others(option)];
  }

  /** Notes that are not about an option. @param {string} option */
  others(option) {
    return this.notes.filter((note) => !note.startsWith(`${option} `));
  }

  /** Why another number is used than the one that was given. @param {string} option @param {number} value */
  setRight(option, value) {
    const [stem] = option.split(".");
    const slider = /** @type {SliderData} */ (this.study.sliders.find((each) => each.option === option || each.option === `${stem}.*`));
    const used = this.get(option);
    if (slider.whole && used === Math.round(value)) return `${option} ${value} is not a whole number; ${used} is used.`;
    const least = Math.max(slider.low, this.least[option] ?? slider.low);
    const here = least > slider.low ? " (with the other options as they are)" : "";
    return `${option} ${value} is outside ${least} to ${slider.high}${here}; ${used} is used.`;
  }

  /** An option back to what the preset has. @param {string} option */
  reset(option) {
    this.set(option, this.get(option, this.presetOptions(this.preset)));
  }

  /** Options that differ from the preset as it is stated. */
  changes() {
    /** @type {Given} */
    const stated = { ...this.study.presets[this.preset].options, seed: 0 };
    return Object.fromEntries(Object.entries(this.options).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(stated[name])));
  }

  /** The words of the command that computes this exactly. */
  command() {
    const given = Object.entries(this.changes()).flatMap(([name, value]) => optionWords(name, value));
    return ["stagescope", "run", this.study.name, "--preset", this.preset, ...given, "--out", `runs/${this.study.name}-played`].join(" ");
  }

  /** The same as a file for `stagescope run --config`. */
  config() {
    return { study: this.study.name, preset: this.preset, ...this.changes() };
  }

  /** @param {URLSearchParams} hash @param {string} prefix */
  write(hash, prefix) {
    hash.set(`${prefix}study`, this.study.name);
    hash.set(`${prefix}preset`, this.preset);
    const own = this.presetOptions(this.preset);
    for (const [name, value] of Object.entries(this.options)) {
      if (JSON.stringify(value) !== JSON.stringify(own[name])) hash.set(prefix + name, [value].flat().join(","));
    }
  }

  /** Takes over what the address says; what cannot be is set right, with a sentence. @param {URLSearchParams} hash @param {string} prefix */
  read(hash, prefix) {
    const preset = hash.get(`${prefix}preset`);
    const wrong = [];
    /** @type {[string, number][]} */
    const moved = [];
    const known = ["study", "preset", "axis", "theme", ...Object.keys(this.options), ...this.study.sliders.map(({ option }) => option.split(".")[0])];
    for (const key of hash.keys()) {
      const name = key.slice(prefix.length);
      if (key.startsWith(prefix) && !known.includes(name)) wrong.push(`there is no option ${quoted(name)}; it is left out.`);
    }
    if (preset !== null && !Object.hasOwn(this.study.presets, preset)) wrong.push(`there is no preset ${quoted(preset)}; ${this.preset} is used.`);
    else if (preset !== null) this.usePreset(preset);
    for (const { option } of this.study.sliders) {
      const stem = option.split(".")[0];
      const text = hash.get(prefix + stem);
      if (text !== null) wrong.push(...this.take(stem, option !== stem, text, moved));
    }
    this.settle(null);
    for (const [option, value] of moved) this.notes = [this.setRight(option, value), ...this.others(option)];
    this.notes = [...wrong, ...this.notes];
  }

  /** @param {string} stem @param {boolean} several @param {string} text of the address @param {[string, number][]} moved where numbers go that are out of range @returns {string[]} what was set right */
  take(stem, several, text, moved) {
    const parts = several ? text.split(",") : [text];
    const known = several ? this.options[stem].length : 1;
    if (parts.length !== known) return [`${stem} needs ${known} numbers and got ${parts.length}; the preset's are used.`];
    return parts.flatMap((part, i) => {
      const option = several ? `${stem}.${i}` : stem;
      const slider = this.study.sliders.find((each) => each.option === (several ? `${stem}.*` : stem));
      const value = part.trim() === "" ? NaN : Number(part);
      if (!slider || !Number.isFinite(value)) return [`${option} ${quoted(part)} is no number; the preset's is used.`];
      const cut = TOOLS.within(slider.whole ? Math.round(value) : value, slider.low, slider.high);
      this.put(option, cut);
      if (cut !== value) moved.push([option, value]);
      return [];
    });
  }
}

/** A setting as the command line takes it; a switch is its name alone. @param {string} name @param {any} value */
function optionWords(name, value) {
  if (value === null || value === false) return [];
  return [`--${name.replaceAll("_", "-")}`, ...(value === true ? [] : [value].flat().map(String))];
}

/** @param {string} text */
function quoted(text) {
  return `"${text.slice(0, 40)}"`;
}

/** Positions of a slider, from 0 to this. @param {SliderData} slider */
export function positionsOf({ low, high, step, log }) {
  return log ? step : Math.round((high - low) / step);
}

/** @param {SliderData} slider @param {number} position */
export function valueAtPosition(slider, position) {
  const { low, high, step, log, whole } = slider;
  const value = log ? low * (high / low) ** (position / positionsOf(slider)) : low + position * step;
  const rounded = log ? Number(value.toPrecision(DIGITS)) : Number(value.toFixed(6));
  return TOOLS.within(whole ? Math.round(rounded) : rounded, low, high);
}

/** @param {SliderData} slider @param {number} value */
export function positionOfValue(slider, value) {
  const { low, high, step, log } = slider;
  const share = log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  return TOOLS.within(Math.round(share * (log ? step : (high - low) / step)), 0, positionsOf(slider));
}
