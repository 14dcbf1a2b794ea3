/** The stages and events of a scene, ready to be drawn along any axis of time. */

/** @typedef {import("./clock.js").Scene} Scene */
/**
 * @typedef {{name: string, start: number, stop: number, lane: number, track: string, colour: number, evidence: string}} Segment
 *   A stage of a run. Stages may overlap: each lies in the first lane of its track that is free. `colour` is the same for
 *   equal names.
 * @typedef {{segments: Segment[], tracks: number[], names: string[]}} Ribbon
 *   `tracks` are the lanes up to the end of each track: first those of the run itself, then those of its parts; `names` are theirs.
 * @typedef {{name: string, time: number, run: number, note: string, interval: [number, number]|null}} Moment
 *   An event that was reached, with its 95 % interval where that is known.
 */

/**
 * The stages of each run. A stage without an end lasts until the run's last frame. Tracks that are aside are left out unless all
 * are asked for; colours are the same with and without them.
 * @param {Scene} scene
 * @param {boolean} [all]
 * @returns {Ribbon[]}
 */
export function ribbonsOf(scene, all = false) {
  /** @type {Map<string, number>} */
  const colours = new Map();
  for (const { name } of scene.runs.flatMap(({ data }) => data.stages).sort((a, b) => Number(a.aside) - Number(b.aside))) {
    if (!colours.has(name)) colours.set(name, colours.size);
  }
  return scene.runs.map(({ data, time }) => {
    const last = time.length ? time[time.length - 1] : 0;
    const stages = data.stages.filter(({ aside }) => all || !aside);
    const names = [...new Set(stages.map(({ track }) => track))].sort((a, b) => Number(a !== "") - Number(b !== ""));
    /** @type {number[]} */
    const tracks = [];
    const segments = names.flatMap((track) => {
      const above = tracks[tracks.length - 1] ?? 0;
      /** @type {number[]} */
      const ends = [];
      const found = stages.filter((stage) => stage.track === track).map((stage) => {
        const { name, start, evidence } = stage;
        const stop = Math.max(start, stage.stop ?? last);
        let lane = ends.findIndex((end) => end <= start);
        if (lane < 0) lane = ends.length;
        ends[lane] = stop;
        return { name, start, stop, lane: above + lane, track, colour: colours.get(name) ?? 0, evidence };
      });
      tracks.push(above + ends.length);
      return found;
    });
    return { segments, tracks, names };
  });
}

/**
 * The lanes at which the tracks of a run begin, with their names; that of the run itself has none.
 * @param {Ribbon} ribbon
 * @param {number} lanes that are shown
 * @returns {{name: string, lane: number}[]}
 */
export function namedLanes({ tracks, names }, lanes) {
  return names.map((name, i) => ({ name, lane: tracks[i - 1] ?? 0 })).filter(({ name, lane }) => name && lane < lanes);
}

/**
 * How many lanes each run has where all together may have `most`: as many tracks as fit, but always the first.
 * @param {Ribbon[]} ribbons
 * @param {number} most
 * @returns {number[]}
 */
export function lanesOf(ribbons, most) {
  const longest = Math.max(0, ...ribbons.map(({ tracks }) => tracks.length));
  for (let count = longest; count > 1; count--) {
    const lanes = ribbons.map(({ tracks }) => tracks[Math.min(count, tracks.length) - 1] ?? 0);
    if (lanes.reduce((sum, n) => sum + n, 0) <= most) return lanes;
  }
  return ribbons.map(({ tracks }) => tracks[0] ?? 0);
}

/**
 * What a detector said of an event. Names are anybody's: one may be called like a member of every object.
 * @param {import("./types.js").RunData} data
 * @param {string} name
 */
function noteOn({ event_notes }, name) {
  return Object.hasOwn(event_notes, name) ? event_notes[name] : "";
}

/**
 * @param {import("./types.js").RunData} data
 * @param {string} name
 */
function intervalOn({ event_intervals }, name) {
  return Object.hasOwn(event_intervals, name) ? event_intervals[name] : null;
}

/**
 * Events all runs reached, in order of time.
 * @param {Scene} scene
 * @returns {Moment[]}
 */
export function momentsOf(scene) {
  const moments = scene.runs.flatMap(({ data }, run) =>
    Object.entries(data.events).flatMap(([name, time]) =>
      time === null ? [] : [{ name, time, run, note: noteOn(data, name), interval: intervalOn(data, name) }],
    ),
  );
  return moments.sort((a, b) => a.time - b.time || a.run - b.run);
}

/**
 * Events that have no time in a run, with their state in words and the reason if there is one.
 * @param {Scene} scene
 * @returns {{name: string, run: number, note: string, state: string}[]}
 */
export function missedIn(scene) {
  return scene.runs.flatMap(({ data }, run) =>
    Object.entries(data.events).flatMap(([name, time]) => {
      const state = Object.hasOwn(data.event_states, name) ? data.event_states[name] : "not reached";
      return time === null ? [{ name, run, note: noteOn(data, name), state }] : [];
    }),
  );
}

/**
 * Names of the stages a run is in at a time; the end of a stage belongs to the next one.
 * @param {Ribbon} ribbon
 * @param {number} time
 */
export function stagesAt(ribbon, time) {
  const inside = ribbon.segments.filter((s) => s.start <= time && (time < s.stop || s.start === s.stop));
  const closing = ribbon.segments.filter((s) => s.stop === time && s.start < time);
  return (inside.length ? inside : closing).map((s) => s.name);
}
