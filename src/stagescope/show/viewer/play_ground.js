/** The playground: sliders beside plots of a flow that is integrated here, again at every move. */

import { el, setText, short } from "./dom.js";
import { PlayAnswers } from "./play_answers.js";
import { playAxis, playWindow } from "./play_axis.js";
import { PlayControls } from "./play_controls.js";
import { differenceOf, FINE, frameAt, playFlow, ROUGH, TOOLS } from "./play_flow.js";
import { PlayOptions } from "./play_options.js";
import { PlayPlot } from "./play_plot.js";

/** @typedef {import("./play_types.js").PlayData} PlayData */
/** @typedef {import("./play_types.js").PaperLaw} PaperLaw */
/** @typedef {import("./play_flow.js").Played} Played */
/** @typedef {import("./play_axis.js").TimeScale} TimeScale */

const PLAY_REST = 160; // ms without a move after which the fine flow is computed
const TIME_SCALES = /** @type {{kind: TimeScale, name: string}[]} */ ([
  { kind: "change", name: "by change" },
  { kind: "time", name: "linear" },
  { kind: "log", name: "log" },
]);

/** Float64 numbers from base64. @param {string} text */
function numbersOf(text) {
  return new Float64Array(Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0)).buffer);
}

export class Playground {
  /**
   * @param {PlayData} data
   * @param {Object<string, PaperLaw>} laws by study
   * @param {() => void} changed called after every change
   */
  constructor(data, laws, changed) {
    this.data = data;
    this.laws = laws;
    this.changed = changed;
    this.settings = new PlayOptions(data.studies[0], laws[data.studies[0].name]);
    /** @type {TimeScale} */
    this.scale = "change";
    this.look = 1;
    /** The stretch of time that is looked at alone. @type {[number, number]|null} */
    this.window = null;
    this.resting = 0;
    this.drawing = 0;
    /** Times of the last moves in ms, newest last: from the move until it is drawn. @type {number[]} */
    this.spent = [];
    this.controls = new PlayControls(() => this.move(), (name) => this.usePreset(name));
    /** The flow of the preset. @type {Played|null} */
    this.before = null;
    /** @type {PlayPlot[]} */
    this.plots = [];
    this.answers = new PlayAnswers(this);
    this.studies = el("select", { class: "play-select", "aria-label": "study", on: { change: () => this.useStudy(this.studies.value) } }, data.studies.map(({ name }) => el("option", { value: name, text: name })));
    this.title = el("p", { class: "play-title" });
    this.notes = el("p", { class: "play-notes", role: "status" });
    this.board = el("div", { class: "play-plots" });
    this.time = el("input", { type: "range", class: "slider", min: 0, max: 1000, step: 1, value: 1000, "aria-label": "time looked at", data: { role: "time" } });
    this.time.addEventListener("input", () => this.lookAt(Number(this.time.value) / 1000));
    this.timeText = el("output", { class: "play-time" });
    this.whole = el("button", { type: "button", class: "quiet", text: "Show all of it (Esc)", hidden: true, on: { click: () => this.zoom(null) } });
    this.element = this.build();
    document.addEventListener("keydown", ({ key }) => {
      if (key === "Escape" && this.window && this.element.isConnected && !document.querySelector("dialog[open]")) this.zoom(null);
    });
    new ResizeObserver(() => this.redraw()).observe(this.board);
  }

  build() {
    const scales = TIME_SCALES.map(({ kind, name }) =>
      el("button", { type: "button", text: name, "aria-pressed": "false", data: { scale: kind }, on: { click: () => this.useScale(kind) } }),
    );
    this.scaleButtons = scales;
    const many = this.data.studies.length > 1;
    const head = el("div", { class: "play-head" }, [many ? el("label", { class: "play-study" }, [el("span", { text: "Study" }), this.studies]) : null, this.title]);
    const bar = el("div", { class: "play-bar" }, [
      el("label", { class: "play-look" }, [el("span", { text: "Look at" }), this.time, this.timeText]),
      this.whole,
      el("div", { class: "chooser", role: "group", "aria-label": "axis of time" }, scales),
    ]);
    const right = el("div", { class: "play-right" }, [bar, this.board, this.answers.element]);
    return el("div", { class: "playground" }, [head, this.notes, el("div", { class: "play-columns" }, [this.controls.element, right])]);
  }

  /** @param {string} name */
  useStudy(name) {
    const study = this.data.studies.find((each) => each.name === name);
    if (!study) return;
    this.settings = new PlayOptions(study, this.laws[name]);
    this.before = this.window = null;
    this.move();
  }

  /** @param {string} name */
  usePreset(name) {
    this.settings.usePreset(name);
    this.before = null;
    this.move();
  }

  /** The axis of time as it is seen now. */
  get axis() {
    const { played, window } = this;
    if (!played) throw new Error("nothing is played yet");
    const whole = playAxis(this.scale, played.time, played.way);
    return window && whole.at(window[1]) > whole.at(window[0]) ? playWindow(whole, window) : whole;
  }

  /** Looks at a stretch of time alone, or at all of it; the time that is looked at stays where it is seen. @param {[number, number]|null} window */
  zoom(window) {
    const time = this.axis.value(this.look);
    this.window = window;
    this.look = Math.min(1, Math.max(0, this.axis.at(time)));
    this.redraw();
  }

  /** @param {number} time */
  goTime(time) {
    this.lookAt(Math.min(1, Math.max(0, this.axis.at(time))));
  }

  /** What a drag along an axis does. */
  get zoomed() {
    const ground = this;
    return { get axis() { return ground.axis; }, goTime: (/** @type {number} */ time) => ground.goTime(time), scale: { zoom: (/** @type {[number, number]|null} */ window) => ground.zoom(window) } }; // prettier-ignore
  }

  /** @param {TimeScale} kind */
  useScale(kind) {
    this.scale = kind;
    this.redraw();
    this.changed();
  }

  /** @param {number} share of the width */
  lookAt(share) {
    this.look = share;
    this.redraw();
  }

  /** Integrates and draws what is set now; once it rests, more finely. */
  move() {
    const began = performance.now();
    this.controls.show(this.settings);
    clearTimeout(this.resting);
    try {
      this.law = this.prepared(this.settings);
      this.rough = this.played = playFlow(this.law, ROUGH);
      if (Object.keys(this.settings.changes()).length) this.before ??= this.ofPreset();
      this.difference = null;
      this.failure = "";
    } catch (error) {
      this.failure = error instanceof Error ? error.message : String(error);
    }
    this.draw();
    this.spent = [...this.spent.slice(-999), performance.now() - began];
    this.resting = setTimeout(() => this.refine(), PLAY_REST);
    this.changed();
  }

  /** The same flow at the fine tolerance, and how far both differ. */
  refine() {
    if (!this.law || !this.rough || this.failure) return;
    try {
      this.played = playFlow(this.law, FINE);
      this.difference = differenceOf(this.rough, this.played);
    } catch (error) {
      this.failure = error instanceof Error ? error.message : String(error);
    }
    this.draw();
    this.changed();
  }

  /** @param {PlayOptions} settings @param {import("./play_types.js").Given} [options] */
  prepared({ study, law, options: set }, options = set) {
    const blocks = study.draws[options.seed] ?? {};
    const draws = Object.fromEntries(Object.entries(blocks).map(([name, text]) => [name, numbersOf(text)]));
    return law.prepare(options, draws, study.constants, TOOLS);
  }

  /** The flow of the preset, to be seen faintly behind; its curves must be as many. */
  ofPreset() {
    return playFlow(this.prepared(this.settings, this.settings.presetOptions(this.settings.preset)), ROUGH);
  }

  redraw() {
    if (this.drawing) return;
    this.drawing = requestAnimationFrame(() => {
      this.drawing = 0;
      this.draw();
    });
  }

  draw() {
    const { settings, played, law } = this;
    this.studies.value = settings.study.name;
    setText(this.title, settings.study.title);
    const said = [...settings.notes, this.failure ? `This flow cannot be shown: ${this.failure}.` : ""].filter(Boolean);
    setText(this.notes, said.join(" "));
    this.notes.hidden = !said.length;
    for (const button of this.scaleButtons ?? []) button.setAttribute("aria-pressed", String(button.dataset.scale === this.scale));
    if (!played || !law) return;
    const { axis } = this;
    this.whole.hidden = !this.window;
    const at = axis.value(this.look);
    setText(this.timeText, `t = ${short(at, 4)}`);
    this.time.setAttribute("aria-valuetext", `t = ${short(at, 4)}`);
    if (Number(this.time.value) !== Math.round(1000 * this.look)) this.time.value = String(Math.round(1000 * this.look));
    while (this.plots.length < law.panels.length) this.plots.push(new PlayPlot((share) => this.lookAt(share), this.zoomed));
    this.plots.length = law.panels.length;
    const elements = this.plots.map(({ element }) => element);
    if (elements.length !== this.board.children.length || elements.some((one, i) => one !== this.board.children[i])) this.board.replaceChildren(...elements);
    const before = this.before && this.before.curves.length === played.curves.length && Object.keys(settings.changes()).length ? this.before : null;
    const scenery = { played, before, preset: settings.preset, axis, panels: law.panels, forms: law.forms, at };
    const palette = playPalette(this.element);
    law.panels.forEach((panel, i) => this.plots[i].draw(panel, scenery, palette));
    this.answers.show(law, played, frameAt(played.time, at), palette);
  }

  /** @param {URLSearchParams} hash */
  write(hash, prefix = "") {
    this.settings.write(hash, prefix);
    if (this.scale !== "change") hash.set(`${prefix}axis`, this.scale);
  }

  /** @param {URLSearchParams} hash */
  read(hash, prefix = "") {
    const name = hash.get(`${prefix}study`);
    const study = this.data.studies.find((each) => each.name === name) ?? this.data.studies[0];
    this.settings = new PlayOptions(study, this.laws[study.name]);
    this.settings.read(hash, prefix);
    if (name !== null && study.name !== name) this.settings.notes.unshift(`there is no study "${name.slice(0, 40)}" in this page; ${study.name} is used.`);
    const scale = hash.get(`${prefix}axis`);
    this.scale = TIME_SCALES.find(({ kind }) => kind === scale)?.kind ?? "change";
    this.before = null;
    this.move();
  }
}

/** Colours of type and lines where the playground is. @param {Element} element @returns {import("./play_plot.js").Palette} */
function playPalette(element) {
  const style = getComputedStyle(element);
  const [ink, muted, line, accent, paper] = ["--ink", "--muted", "--line", "--accent", "--paper"].map((name) => style.getPropertyValue(name).trim() || "#888");
  return { ink, muted, line, accent, paper, dark: style.colorScheme.includes("dark") };
}
