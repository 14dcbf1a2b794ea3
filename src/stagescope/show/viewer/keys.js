/** The keyboard, and the help that lists it. What keys do is said by the page: `report_keys.js`, `diagram_keys.js`. */

import { el } from "./dom.js";

/**
 * @template Actions
 * @typedef {{keys: string[], shown: string, says: string, does: (actions: Actions, event: KeyboardEvent) => void}} Binding
 */

/**
 * Whether the focused element wants this key for itself.
 * @param {KeyboardEvent} event
 */
function taken(event) {
  const target = event.target instanceof Element ? event.target : null;
  if (!target || target.matches("input[type=range]")) return false;
  if (target.closest("dialog[open]")) return true;
  if (target.matches("select, input, textarea")) return true;
  return event.key === " " && target.matches("button, summary, a");
}

/**
 * Listens to the whole page; what a panel handles itself does not come this far.
 * @template Actions
 * @param {Binding<Actions>[]} bindings
 * @param {Actions} actions
 * @param {(binding: Binding<Actions>) => boolean} active whether a binding holds now
 */
export function listenToKeys(bindings, actions, active = () => true) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || taken(event)) return;
    const binding = bindings.find((one) => one.keys.includes(event.key) && active(one));
    if (!binding) return;
    event.preventDefault();
    binding.does(actions, event);
  });
  document.addEventListener("click", (event) => {
    const focused = document.activeElement;
    if (!event.detail || !(focused instanceof HTMLButtonElement) || focused.closest("dialog")) return;
    focused.blur(); // after a click with the mouse Space plays, it does not press the button again
  });
}

/**
 * A window with all keys; open it with showModal().
 * @param {{shown: string, says: string}[]} bindings
 * @param {string[]} advice
 */
export function helpDialog(bindings, advice) {
  const rows = bindings.map(({ shown, says }) =>
    el("tr", {}, [el("th", { scope: "row" }, el("kbd", { text: shown })), el("td", { text: says })]),
  );
  const close = el("button", { type: "button", class: "plain", text: "Close", on: { click: () => dialog.close() } });
  const dialog = el("dialog", { class: "help", "aria-labelledby": "help-title" }, [
    el("h2", { id: "help-title", text: "How to read this page" }),
    ...advice.map((text) => el("p", { text })),
    el("table", {}, el("tbody", {}, rows)),
    close,
  ]);
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  return dialog;
}
