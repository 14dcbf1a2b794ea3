/**
 * The clock of a scene: one scrubber over the frames of all its runs.
 *
 * A position is a place in the sorted union of the runs' times. A run shows its frame nearest to the present time (the earlier
 * one if two are equally near), so runs with different frames stay side by side and each panel can say which frame it shows.
 */

import { category } from "./colours.js";
import { clockText, count } from "./dom.js";
import { placesOf, Scale } from "./scale.js";

/** @typedef {import("./types.js").SceneData} SceneData */
/** @typedef {import("./types.js").RunData} RunData */
/** @typedef {import("./types.js").View} View */
/** @typedef {import("./blocks.js").Store} Store */
/** @typedef {import("./state.js").Settings} Settings */
/**
 * @typedef {{data: RunData, time: Float64Array, places: Float64Array|null, short: string}} SceneRun
 *   `places` of its frames on the scale by change; `short` is its name without what the names of all runs begin with.
 */
/** @typedef {{frame: number, at: number, place: number}} Shown frame of the run, its time, place in the view's arrays */

const TOKEN_COLOURS = 8; // as many as there are

/**
 * Neighbouring places between which `t` lies in an ascending array; at its ends where it lies outside.
 * @param {ArrayLike<number>} times
 * @param {number} t
 */
export function around(times, t) {
  let low = 0;
  let high = times.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle] <= t) low = middle;
    else high = middle;
  }
  return [low, high];
}

/** Place of the time nearest to `t`; ties go to the earlier, -1 if there is none. @param {ArrayLike<number>} times @param {number} t */
export function nearest(times, t) {
  const [low, high] = around(times, t);
  return high > low && times[high] - t < t - times[low] ? high : Math.min(low, high);
}

/**
 * Sorted union without repeats.
 * @param {Float64Array[]} arrays
 */
function union(arrays) {
  if (arrays.length === 1) return arrays[0];
  const all = new Float64Array(arrays.reduce((sum, array) => sum + array.length, 0));
  let size = 0;
  for (const array of arrays) {
    all.set(array, size);
    size += array.length;
  }
  all.sort();
  return all.filter((t, i) => i === 0 || t !== all[i - 1]);
}

/**
 * Names without their common beginning, which ends at a sign between words; "flow-seed-1" is "seed-1". As they are if one of them would be left empty.
 * @param {string[]} names
 */
function shortNames(names) {
  let same = 0;
  while (names.length > 1 && same < names[0].length && names.every((name) => name[same] === names[0][same])) same++;
  const common = names[0].slice(0, same);
  let start = common.search(/[-_/ ,:][^-_/ ,:]*$/) + 1;
  if (names.some((name) => !/[^\d.]/.test(name.slice(start)))) start = common.slice(0, start).search(/[^-_/ ,:]+[-_/ ,:]+$/);
  start = Math.max(0, start); // a number alone names nothing: it keeps the word before it
  return names.every((name) => name.length > start) ? names.map((name) => name.slice(start)) : names;
}

/** Runs on one clock, the present position among their frames, and who wants to know. */
export class Scene {
  /**
   * @param {SceneData} data
   * @param {SceneRun[]} runs
   * @param {Map<View, Int32Array>} frames the frames of thinned views
   * @param {Settings} settings
   */
  constructor(data, runs, frames, settings) {
    this.title = data.title;
    this.clock = data.clock;
    this.runs = runs;
    this.settings = settings;
    this.data = data;
    this.times = union(runs.map((run) => run.time));
    const last = this.times.length ? this.times[this.times.length - 1] : 0;
    /** @type {[number, number][]} */
    const stages = runs.flatMap(({ data }) =>
      data.stages.flatMap(({ start, stop, track }) => (track ? [] : [/** @type {[number, number]} */ ([start, stop ?? last])])),
    );
    const of = runs.find(({ data }) => data.change)?.data.change?.of ?? "";
    this.scale = new Scale(this.times, placesOf(this.times, runs), of, data.log_time === true, stages, settings);
    this.position = 0;
    /** @type {[number, number]|null} */
    this.marked = null;
    this.frames = frames;
    /** @type {Map<View, Float64Array>} */
    this.viewTimes = new Map();
    for (const run of runs) {
      for (const view of run.data.views) {
        const kept = frames.get(view);
        this.viewTimes.set(view, kept ? Float64Array.from(kept, (frame) => run.time[frame]) : run.time);
      }
    }
    /** @type {((time: number) => void)[]} */
    this.listeners = [];
    /** @type {((span: [number, number]|null) => void)[]} */
    this.markers = [];
  }

  /** The axis of time, as it is seen now. */
  get axis() {
    return this.scale.axis;
  }

  /** Whether values are on a logarithmic axis: as the reader chose, else as suits them. @param {string} slot */
  isLog(slot) {
    const views = this.runs.flatMap(({ data }) => data.views);
    const starts = () => views.some((view) => view.kind === "curves" && view.slot === slot && view.start_log === true);
    return this.settings.logOf(slot) ?? starts();
  }

  /** The colour of a token, the same in all views; null where there are more tokens than colours. @param {string} token */
  tokenColour(token) {
    const { tokens } = this.data;
    const place = tokens.length <= TOKEN_COLOURS ? tokens.indexOf(token) : -1;
    return place < 0 ? null : () => category(place);
  }

  /** The present time. */
  get time() {
    return this.times.length ? this.times[this.position] : NaN;
  }

  /**
   * Which frame a run shows now, or a view of it that keeps only some frames.
   * @param {number} run
   * @param {View|null} view
   * @returns {Shown}
   */
  frameOf(run, view = null) {
    return this.frameAt(run, view, this.time);
  }

  /**
   * The frame a run, or a view of it, shows at a time.
   * @param {number} run
   * @param {View|null} view
   * @param {number} time
   * @returns {Shown}
   */
  frameAt(run, view, time) {
    const times = this.timesOf(run, view);
    const place = nearest(times, time);
    const kept = view && this.frames.get(view);
    return { frame: kept ? kept[place] : place, at: place < 0 ? NaN : times[place], place };
  }

  /**
   * Times of the frames a run, or a view of it, has.
   * @param {number} run
   * @param {View|null} view
   * @returns {Float64Array}
   */
  timesOf(run, view = null) {
    return (view && this.viewTimes.get(view)) ?? this.runs[run].time;
  }

  /** A frame in words; "no frame" of a view that has none. @param {Shown} shown @param {View|null} [view] that says how many it has */
  frameText({ frame, at, place }, view = null) {
    return place < 0 ? "no frame" : `frame ${count(frame + 1)}${view ? ` of ${count(view.of)}` : ""}, ${clockText(this.clock, at)}`;
  }

  /** @param {number} position moves to a frame of the union; out of range is the nearest end */
  go(position) {
    const to = Math.max(0, Math.min(this.times.length - 1, Math.round(position) || 0));
    if (to === this.position) return;
    this.position = to;
    this.scale.follow(this.time);
    for (const listener of this.listeners) listener(this.time);
  }

  /** @param {number} time moves to the frame nearest to a time */
  goTime(time) {
    this.go(nearest(this.times, time));
  }

  /** Moves to the first frame inside of a stretch of time, or where it has none to the nearest. @param {number} start @param {number} stop */
  enter(start, stop) {
    const inside = this.times.findIndex((time) => time >= start);
    if (inside >= 0 && this.times[inside] <= stop) this.go(inside);
    else this.goTime(start);
  }

  /** @param {[number, number]|null} span highlights a stretch of time on the ribbon and the curves; null clears it */
  mark(span) {
    this.marked = span;
    for (const marker of this.markers) marker(span);
  }

  /** @param {(time: number) => void} listener called after every move */
  on(listener) {
    this.listeners.push(listener);
  }

  /** @param {(span: [number, number]|null) => void} marker called after every change of the highlight */
  onMark(marker) {
    this.markers.push(marker);
  }
}

/**
 * Decodes what a clock needs (times, and which frames thinned views keep) and starts it.
 * @param {Store} store
 * @param {SceneData} data
 * @param {Settings} settings
 * @returns {Promise<Scene>}
 */
export async function openScene(store, data, settings) {
  const times = await Promise.all(data.runs.map((run) => store.get(run.time)));
  const places = await Promise.all(data.runs.map((run) => (run.change ? store.get(run.change.at) : null)));
  /** @type {Map<View, Int32Array>} */
  const frames = new Map();
  for (const view of data.runs.flatMap((run) => run.views)) {
    if (view.frames) frames.set(view, /** @type {Int32Array} */ (await store.get(view.frames)));
  }
  const names = shortNames(data.runs.map(({ name }) => name));
  const runs = data.runs.map((run, i) => ({
    data: run,
    time: /** @type {Float64Array} */ (times[i]),
    places: /** @type {Float64Array|null} */ (places[i]),
    short: names[i],
  }));
  return new Scene(data, runs, frames, settings);
}
