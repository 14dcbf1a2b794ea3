/** What keys do on the page of a sweep. */

/**
 * @typedef {{move: (dx: number, dy: number) => void, colour: (step: number) => void, cut: (step: number) => void,
 *   swap: () => void, clear: () => void, theme: () => void, help: () => void}} DiagramActions
 */

/** @type {import("./keys.js").Binding<DiagramActions>[]} */
export const DIAGRAM_KEYS = [
  { keys: ["ArrowRight"], shown: "\u2192", says: "cell to the right", does: ({ move }) => move(1, 0) },
  { keys: ["ArrowLeft"], shown: "\u2190", says: "cell to the left", does: ({ move }) => move(-1, 0) },
  { keys: ["ArrowUp"], shown: "\u2191", says: "cell above", does: ({ move }) => move(0, -1) },
  { keys: ["ArrowDown"], shown: "\u2193", says: "cell below", does: ({ move }) => move(0, 1) },
  { keys: ["c", "C"], shown: "C", says: "next column as colour; with Shift the one before", does: ({ colour }, event) => colour(event.shiftKey ? -1 : 1) },
  { keys: ["["], shown: "[", says: "lower value of the first axis that is cut", does: ({ cut }) => cut(-1) },
  { keys: ["]"], shown: "]", says: "higher value of the first axis that is cut", does: ({ cut }) => cut(1) },
  { keys: ["x", "X"], shown: "X", says: "change the two axes", does: ({ swap }) => swap() },
  { keys: ["d", "D"], shown: "D", says: "light or dark", does: ({ theme }) => theme() },
  { keys: ["Escape"], shown: "Esc", says: "no cell", does: ({ clear }) => clear() },
  { keys: ["?"], shown: "?", says: "this help", does: ({ help }) => help() },
];

export const DIAGRAM_ADVICE = [
  "Every cell is one setting of the swept options, computed with one or several seeds. Its colour is the median over seeds, " +
    "or the most frequent name. An event that had not come by the end of a run is later than all that had. Intervals are 95 % " +
    "bootstrap intervals over seeds. A dot marks cells whose seeds disagree, or of which some failed or have no value.",
  "Hover over a cell for its value; click it for its runs and for the commands that make them again. In hatched cells all runs " +
    "failed. Blank ones were not computed. The address of the page holds what is shown: copy it to send somebody this view.",
];
