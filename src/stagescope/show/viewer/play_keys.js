/** Keys of the page of a playground. */

/** @typedef {{theme: () => void, help: () => void, ground: import("./play_ground.js").Playground}} PlayActions */

const AXES = /** @type {import("./play_axis.js").TimeScale[]} */ (["change", "time", "log"]);

/** @type {import("./keys.js").Binding<PlayActions>[]} */
export const PLAY_BINDINGS = [
  { keys: ["l", "L"], shown: "L", says: "axis of time: by change, linear, logarithmic", does: ({ ground }) => ground.useScale(AXES[(AXES.indexOf(ground.scale) + 1) % AXES.length]) },
  { keys: ["r", "R"], shown: "R", says: "back to the preset", does: ({ ground }) => ground.usePreset(ground.settings.preset) },
  { keys: ["d", "D"], shown: "D", says: "light or dark", does: ({ theme }) => theme() },
  { keys: ["?"], shown: "?", says: "this help", does: ({ help }) => help() },
];

export const PLAY_ADVICE = [
  "Move a slider: the flow is integrated in this page, from the same start as Python's, and drawn again. Tab goes from slider to slider, arrow keys move it.",
  "Faint curves are those of the preset. Dashed lines across are levels; dashed slopes are rates that theory gives. Vertical lines are events: a curve crosses a level there.",
  "On the axis \"by change\" equal lengths are equal changes of the curves, every plot counting the same, so that short stages are seen.",
  "Drag along an axis of time to look at a stretch of it alone; Esc or a double click shows all of it again.",
  "This is a preview with a stated error and without stages and claims: run the command below for those.",
];
