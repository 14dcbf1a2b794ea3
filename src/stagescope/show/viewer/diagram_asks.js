/** The row of choices above a diagram: axes, colour, and where the other axes are cut. */

import { GROUPS } from "./cell_panel.js";
import { brief, el, nameOf, short } from "./dom.js";

/** @typedef {import("./diagram_state.js").DiagramState} DiagramState */
/** @typedef {{value: string, text: string, group?: string}} Option */
/** @typedef {(change: () => void) => void} Turn */

const NOTHING = "";
/** @type {Object<string, string>} */
const TITLES = { ...GROUPS, axes: "Axes" };

/** @param {DiagramState} state @param {Turn} turn @returns {HTMLElement[]} */
export function askBar(state, turn) {
  const { table, axes } = state;
  const names = axes.map((name) => ({ value: name, text: name }));
  const curve = { value: NOTHING, text: "nothing: a curve" };
  const columns = Object.keys(TITLES).flatMap((group) =>
    [...table.columns.values()].filter((column) => column.group === group).map(({ name }) => ({ value: name, text: name, group })),
  );
  const parts = [
    asked("Across", names, state.x, (name) => turn(() => state.setX(name))),
    asked("Up", [...names.filter(({ value }) => axes.length > 1 || value !== state.x), curve], state.y ?? NOTHING, (name) =>
      turn(() => state.setY(name === NOTHING ? null : name)),
    ),
    asked("Colour", columns, state.color, (name) => turn(() => state.setColor(name))),
  ];
  for (const name of state.others) {
    const values = table.ruler(name).at;
    const word = (/** @type {number} */ value) => (table.ruler(name).named ? table.wordOf(name, value) : short(value, 6));
    const options = values.map((value) => ({ value: String(value), text: word(value) }));
    const set = (/** @type {string} */ value) => turn(() => void state.cuts.set(name, Number(value)));
    if (values.length > 1) parts.push(asked(name, options, String(state.cuts.get(name)), set));
  }
  return parts;
}

/**
 * @param {string} name
 * @param {Option[]} options
 * @param {string} present
 * @param {(value: string) => void} choose
 */
function asked(name, options, present, choose) {
  const made = (/** @type {Option} */ { value, text }) => el("option", { value, text: brief(text, 60), selected: value === present });
  const groups = [...new Set(options.map(({ group }) => group))];
  const children =
    groups.length > 1
      ? groups.map((group) => el("optgroup", { label: TITLES[group ?? ""] }, options.filter((option) => option.group === group).map(made))) // prettier-ignore
      : options.map(made);
  const change = (/** @type {Event} */ event) => choose(/** @type {HTMLSelectElement} */ (event.target).value);
  return el("label", { class: "ask" }, [
    el("span", { class: "ask-name" }, nameOf(name, 40)),
    el("select", { class: "ask-select", data: { ask: name }, on: { change } }, children),
  ]);
}
