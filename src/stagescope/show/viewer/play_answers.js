/** What a playground says below its plots: events, numbers of theory, the error of the preview, and how to run this exactly. */

import { category, colourMap, css, inkOn, scalePlace } from "./colours.js";
import { el, setText, short } from "./dom.js";

/** @typedef {import("./play_ground.js").Playground} Playground */
/** @typedef {import("./play_types.js").Law} Law */
/** @typedef {import("./play_flow.js").Played} Played */
/** @typedef {import("./play_plot.js").Palette} Palette */

const LARGEST_CELLS = 10; // rows and columns of a matrix that is shown
const CONFIG_KEPT = 60_000; // ms a finished file stays in memory for the browser to fetch

export class PlayAnswers {
  /** @param {Playground} ground */
  constructor(ground) {
    this.ground = ground;
    this.events = el("ul", { class: "play-events", "aria-label": "events" });
    this.forms = el("dl", { class: "play-forms" });
    this.error = el("p", { class: "play-error" });
    this.command = el("code", { class: "play-command", tabindex: 0, "aria-label": "command" });
    this.done = el("span", { class: "play-done", role: "status" });
    this.cells = el("table", { class: "play-cells" });
    this.matrixTitle = el("h2");
    this.matrixAbout = el("p", { class: "about" });
    this.matrix = el("section", { class: "play-panel", data: { slot: "matrix" } }, [this.matrixTitle, this.matrixAbout, el("div", { class: "play-scroll", tabindex: 0 }, this.cells)]);
    const button = (/** @type {string} */ text, /** @type {() => void} */ click) => el("button", { type: "button", class: "plain", text, on: { click } });
    this.element = el("div", { class: "play-answers" }, [
      this.matrix,
      el("section", { class: "play-part" }, [el("h2", { text: "Events" }), this.events, el("h2", { text: "What theory gives" }), this.forms]),
      el("section", { class: "play-part whole" }, [
        el("h2", { text: "Run this exactly" }),
        this.command,
        el("div", { class: "play-tools" }, [button("Copy command", () => this.copy()), button("Download configuration", () => this.download()), this.done]),
        this.error,
      ]),
    ]);
  }

  /** @param {Law} law @param {Played} played @param {number} frame @param {Palette} palette */
  show(law, played, frame, palette) {
    const came = played.events.filter(({ time }) => time !== null).sort((a, b) => Number(a.time) - Number(b.time));
    const not = played.events.filter(({ time }) => time === null);
    const items = came.map(({ name, time, says }) => el("li", { title: says }, [el("b", { text: name }), ` t = ${short(time, 4)} `, el("span", { class: "muted", text: says })]));
    if (not.length) items.push(el("li", { class: "muted" }, `not by t = ${short(law.until, 4)}: ${not.map(({ name }) => name).join(", ")}. ${not[0].name} would be: ${not[0].says}`));
    this.events.replaceChildren(...items);
    this.forms.replaceChildren(...law.forms.flatMap(({ symbol, value, says }) => [el("dt", {}, [`${symbol} = `, el("b", { text: short(value, 4) })]), el("dd", { text: says })]));
    setText(this.error, this.errorText(played));
    setText(this.command, this.ground.settings.command());
    this.showMatrix(law, played, frame, palette);
  }

  /** @param {Played} played */
  errorText(played) {
    const found = this.ground.difference;
    if (!found) return `Preview at tolerance ${played.tolerance}.`;
    const share = (/** @type {number} */ value) => `${short(100 * value, 2)} %`;
    const missing = found.missing ? ` ${found.missing} of the events ${found.missing === 1 ? "is" : "are"} in one of them only.` : "";
    return `Error of this preview: at tolerance 0.001 event times differ from those shown, at 0.00001, by at most ${share(found.events)}, the last loss by ${short(found.loss, 2)}; by the order of the method about ${share(found.fineEvents)} and ${short(found.fineLoss, 2)} are left.${missing} The command computes it to a relative tolerance of ${this.ground.settings.options.rtol ?? 1e-10}.`;
  }

  /** @param {Law} law @param {Played} played @param {number} frame @param {Palette} palette */
  showMatrix({ matrix }, played, frame, palette) {
    this.matrix.hidden = !matrix || matrix.rows.length > LARGEST_CELLS;
    if (!matrix || this.matrix.hidden) return;
    const values = matrix.values(played.states[frame]);
    const signed = values.some((x) => x < 0);
    const most = values.reduce((top, x) => Math.max(top, Math.abs(x)), 1e-12);
    const high = signed ? most : Math.max(1, most);
    const map = colourMap(signed, palette.dark ? "dark" : "light");
    setText(this.matrixTitle, `${matrix.title} at t = ${short(played.time[frame], 4)}`);
    setText(this.matrixAbout, matrix.about);
    const cell = (/** @type {number} */ x) => {
      const place = scalePlace(x, signed ? -high : 0, high);
      const node = el("td", { text: signed ? short(Math.abs(x) < 1e-3 * most ? 0 : x, 2) : x.toFixed(2) });
      const colour = map[Math.round(place * (map.length - 1))];
      node.style.background = css(colour);
      node.style.color = inkOn(colour);
      return node;
    };
    const columns = matrix.columns.length;
    const head = el("tr", {}, [el("td"), ...matrix.columns.map((name) => el("th", { scope: "col", text: name }))]);
    const rows = matrix.rows.map((name, i) => {
      const swatch = el("span", { class: "play-swatch" });
      swatch.style.background = category(i, palette.dark ? "dark" : "light");
      return el("tr", {}, [el("th", { scope: "row" }, [swatch, name]), ...Array.from(values.subarray(i * columns, (i + 1) * columns), cell)]);
    });
    this.cells.replaceChildren(head, ...rows);
  }

  async copy() {
    const text = this.ground.settings.command();
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const range = document.createRange();
      range.selectNodeContents(this.command);
      getSelection()?.removeAllRanges();
      getSelection()?.addRange(range);
      if (!document.execCommand("copy")) return this.say("It is selected: copy it with the keys of your browser.");
    }
    return this.say("Copied.");
  }

  download() {
    const { settings } = this.ground;
    const address = URL.createObjectURL(new Blob([`${JSON.stringify(settings.config(), null, 2)}\n`], { type: "application/json" }));
    el("a", { href: address, download: `${settings.study.name}.json` }).click();
    setTimeout(() => URL.revokeObjectURL(address), CONFIG_KEPT);
    this.say(`Run it: stagescope run --config ${settings.study.name}.json --out runs/${settings.study.name}-played`);
  }

  /** @param {string} text */
  say(text) {
    setText(this.done, text);
  }
}
