/** The player bar: slider, play and pause, speed, the stages above the slider and the events below it. */

import { clockText, count, el, nameOf, setText, short } from "./dom.js";
import { around, nearest } from "./clock.js";
import { momentsOf, missedIn, ribbonsOf, stagesAt } from "./stages.js";
import { presentWords } from "./present.js";
import { SPEEDS } from "./state.js";
import { glossaryOf, tipOn } from "./terms.js";
import { timeBar } from "./time_axis.js";
import { stageRibbon } from "./track.js";
import { zoomByPinch } from "./zoom.js";

/** @typedef {import("./clock.js").Scene} Scene */
/** @typedef {import("./stages.js").Moment} Moment */

const FRAMES_A_SECOND = 24; // at speed 1, if that takes no longer than LONGEST
const LONGEST = 20; // seconds from start to end at speed 1

/** Moves through the frames of a scene by itself: equal changes take equal times, and frames do where no change is known. */
class Player {
  /** @param {Scene} scene @param {() => void} changed */
  constructor(scene, changed) {
    this.scene = scene;
    this.changed = changed;
    this.playing = false;
    this.at = 0; // on the scale by change, 0..1
    this.went = 0; // frame that it moved to
    this.last = 0;
    this.end = 0; // frame at which it stops
    this.pace = 0; // of the scale, in a second
    this.turn = 0;
    this.seconds = Math.min(LONGEST, scene.times.length / FRAMES_A_SECOND);
    this.places = scene.scale.places ?? scene.times.map((_, i) => i / Math.max(1, scene.times.length - 1));
  }

  /** Plays from one time to another in some seconds. @param {number} start @param {number} stop @param {number} seconds */
  from(start, stop, seconds) {
    const { scene } = this;
    this.playing = false;
    scene.goTime(start);
    if (scene.times.length < 2) return;
    this.toggle();
    const end = nearest(scene.times, stop);
    this.end = Math.max(end, scene.position + 1);
    this.pace = (this.places[Math.min(this.end, this.places.length - 1)] - this.at) / seconds;
  }

  toggle() {
    if (this.playing) return this.stop();
    const { scene } = this;
    if (scene.times.length < 2) return;
    if (scene.position === scene.times.length - 1) scene.go(0);
    this.playing = true;
    this.went = scene.position;
    this.at = this.places[this.went];
    this.end = scene.times.length - 1;
    this.pace = 1 / this.seconds;
    this.turn++;
    const { turn } = this;
    this.last = performance.now();
    this.changed();
    requestAnimationFrame((now) => this.step(now, turn));
  }

  stop() {
    this.playing = false;
    this.changed();
  }

  /** @param {number} now milliseconds @param {number} turn of playing: an earlier one ends when another begins */
  step(now, turn) {
    const { scene } = this;
    if (!this.playing || turn !== this.turn) return;
    if (this.went !== scene.position) this.at = this.places[scene.position]; // somebody else moved: go on from there
    const pace = Number(scene.settings.get("speed")) * this.pace;
    this.at = Math.min(1, this.at + (Math.max(0, now - this.last) / 1000) * pace);
    this.last = now;
    this.went = Math.min(this.end, this.at >= 1 ? scene.times.length - 1 : around(this.places, this.at)[0]);
    scene.go(this.went);
    if (scene.position >= this.end) this.stop();
    else requestAnimationFrame((later) => this.step(later, turn));
  }
}

/**
 * @typedef {{element: HTMLElement, show: () => void, recolour: () => void, toggle: () => void, stop: () => void,
 *   speed: (faster: boolean) => void, event: (forward: boolean) => void,
 *   playFrom: (start: number, stop: number, seconds: number) => void}} Scrubber
 */

/** @param {Scene} scene @returns {Scrubber} */
export function scrubberOf(scene) {
  const moments = momentsOf(scene);
  const ribbon = stageRibbon(scene, moments);
  const slider = el("input", {
    type: "range",
    min: 0,
    max: 1,
    step: "any",
    "aria-label": "frame",
    class: "slider",
  });
  slider.disabled = scene.times.length < 2;
  slider.addEventListener("input", () => scene.goTime(scene.axis.value(Number(slider.value))));
  const play = el("button", { type: "button", class: "play", "aria-label": "play", title: "Play or pause (Space)" });
  const player = new Player(scene, () => {
    play.setAttribute("aria-label", player.playing ? "pause" : "play");
    play.classList.toggle("playing", player.playing);
  });
  play.addEventListener("click", () => player.toggle());
  play.disabled = scene.times.length < 2;
  const speed = speedChoice(scene.settings);
  const said = readout(scene);
  const chips = chipsOf(scene, moments);
  const words = presentWords(scene);
  const bar = scene.times.length > 1 ? timeBar(scene) : null;
  const track = el("div", { class: "track" }, [ribbon.element, slider, bar?.element]);
  if (chips) (bar?.said ?? track).append(chips.element);
  if (bar) zoomByPinch(scene, track, bar.ticks);
  track.style.setProperty("--names", `${scene.runs.length > 1 ? gutter(scene) : ribbon.gutter}px`);
  track.classList.toggle("several", scene.runs.length > 1);
  const row = el("div", { class: "player-row" }, [el("div", { class: "buttons" }, [play, speed]), track, said.element]);

  const show = () => {
    slider.value = String(scene.scale.share(scene.time));
    slider.setAttribute("aria-valuetext", said.show());
    chips?.show();
    words?.show();
  };
  const event = (/** @type {boolean} */ forward) => {
    const places = moments.map(({ time }) => nearest(scene.times, time));
    const to = forward ? places.find((at) => at > scene.position) : places.filter((at) => at < scene.position).pop();
    if (to !== undefined) scene.go(to);
  };
  const change = (/** @type {boolean} */ faster) => {
    const at = SPEEDS.indexOf(Number(scene.settings.get("speed"))) + (faster ? 1 : -1);
    if (SPEEDS[at]) scene.settings.set("speed", String(SPEEDS[at]));
  };
  scene.scale.on(show);
  show();
  return {
    element: el("section", { class: "player", "aria-label": "player" }, [words?.element, row]),
    show,
    recolour: ribbon.recolour,
    toggle: () => player.toggle(),
    stop: () => player.stop(),
    speed: change,
    event,
    playFrom: (start, stop, seconds) => player.from(start, stop, seconds),
  };
}

/** Pixels for the names of the runs beside their ribbons. @param {Scene} scene */
function gutter(scene) {
  const longest = Math.max(...scene.runs.map((run) => run.short.length));
  return Math.min(130, 14 + 6.2 * longest);
}

/** @param {import("./state.js").Settings} settings */
function speedChoice(settings) {
  const options = SPEEDS.map((speed) => el("option", { value: speed, text: `${speed}\u00d7` }));
  const choice = el("select", { class: "speed", "aria-label": "speed", title: "Speed ([ slower, ] faster)" }, options);
  const show = () => (choice.value = settings.get("speed"));
  choice.addEventListener("change", () => settings.set("speed", choice.value));
  settings.on(show);
  show();
  return choice;
}

/**
 * Time, frame and stage in words.
 * @param {Scene} scene
 */
function readout(scene) {
  const ribbons = ribbonsOf(scene);
  const time = el("span", { class: "readout-time" });
  const frame = el("span", { class: "readout-frame" });
  const element = el("div", { class: "readout" }, [time, frame]);
  const show = () => {
    const stages = [...new Set(ribbons.flatMap((ribbon) => stagesAt(ribbon, scene.time)))].join(", ");
    const when = clockText(scene.clock, scene.time);
    const which = `frame ${count(scene.position + 1)} of ${count(scene.times.length)}`;
    setText(time, when);
    setText(frame, which);
    return `${which}, ${when}${stages ? `, stage ${stages}` : ""}`;
  };
  return { element, show };
}

/**
 * The 95 % interval of an event, for its tooltip.
 * @param {Moment} moment
 */
function intervalText({ interval }) {
  return interval ? `, 95 % interval ${short(interval[0])} to ${short(interval[1])}` : "";
}

/**
 * One chip for each event: reached ones are buttons, the others say why not.
 * @param {Scene} scene
 * @param {Moment[]} moments
 */
function chipsOf(scene, moments) {
  const missed = missedIn(scene);
  const glossary = glossaryOf(scene);
  if (!moments.length && !missed.length) return null;
  const whose = (/** @type {number} */ run) =>
    scene.runs.length > 1 ? el("span", { class: "chip-run" }, nameOf(scene.runs[run].short, 24)) : null;
  const reached = moments.map((moment) => {
    const chip = el(
      "button",
      {
        type: "button",
        class: "chip",
        title: `Go to ${moment.name} at ${clockText(scene.clock, moment.time)}${intervalText(moment)}${moment.note ? `\n${moment.note}` : ""}`,
        data: { event: moment.name },
        on: { click: () => scene.goTime(moment.time) },
      },
      [whose(moment.run), nameOf(moment.name, 60), el("span", { class: "chip-time", text: short(moment.time) })],
    );
    tipOn(chip, glossary.meaning(moment.name));
    return { moment, chip, at: nearest(scene.times, moment.time) };
  });
  const others = missed.map(({ name, run, note, state }) => {
    const said = `${name}: ${state}${note ? `: ${note}` : ""}`;
    const chip = el("span", { class: "chip missed", title: said }, [
      whose(run),
      nameOf(name, 60),
      el("span", { class: "chip-time", text: state }),
    ]);
    tipOn(chip, glossary.meaning(name));
    return chip;
  });
  const element = el("div", { class: "chips", role: "group", "aria-label": "events" }, [
    el("span", { class: "chips-name", text: "events" }),
    ...reached.map(({ chip }) => chip),
    ...others,
  ]);
  let latest = -1;
  const show = () => {
    for (const { chip, at, moment } of reached) {
      chip.classList.toggle("passed", moment.time <= scene.time);
      chip.classList.toggle("here", at === scene.position);
    }
    const passed = reached.filter(({ moment }) => moment.time <= scene.time).length - 1;
    if (passed === latest) return;
    latest = passed; // the row may be longer than the bar: the latest event stays in sight
    element.scrollLeft = passed < 0 ? 0 : reached[passed].chip.offsetLeft - element.clientWidth / 2;
  };
  return { element, show };
}
