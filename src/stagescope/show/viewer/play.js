/** The page of a playground alone: `stagescope play`. */

import { themeNow } from "./colours.js";
import { el } from "./dom.js";
import { helpDialog, listenToKeys } from "./keys.js";
import { confess, setTheme, titleRow } from "./page_head.js";
import { Playground } from "./play_ground.js";
import { PLAY_ADVICE, PLAY_BINDINGS } from "./play_keys.js";
import { hashWriter, readHash } from "./state.js";

const PLAY_THEMES = ["auto", "light", "dark"];

class PlayPage {
  /** @param {import("./play_types.js").PlayData} data */
  constructor(data) {
    this.theme = "auto";
    this.help = helpDialog(PLAY_BINDINGS, PLAY_ADVICE);
    const laws = /** @type {any} */ (globalThis).stagescopeLaws;
    this.writeHash = hashWriter(() => this.hash());
    this.ground = new Playground(data, laws, () => this.writeHash());
    const head = titleRow(data.title, data.version, { theme: () => this.turn(), help: () => this.help.showModal() });
    document.body.append(this.help);
    document.getElementById("page")?.replaceChildren(el("header", { class: "page-head" }, head), this.ground.element);
    this.follow();
    window.addEventListener("hashchange", () => this.follow());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.ground.redraw());
    listenToKeys(PLAY_BINDINGS, { theme: () => this.turn(), help: () => this.help.showModal(), ground: this.ground });
  }

  follow() {
    const hash = readHash();
    this.paint(PLAY_THEMES.find((name) => name === hash.get("theme")) ?? "auto");
    this.ground.read(hash);
  }

  /** @param {string} theme */
  paint(theme) {
    this.theme = theme;
    setTheme(theme);
    this.ground.redraw();
  }

  turn() {
    this.paint(themeNow() === "dark" ? "light" : "dark");
    this.writeHash();
  }

  hash() {
    const hash = new URLSearchParams();
    this.ground.write(hash);
    if (this.theme !== "auto") hash.set("theme", this.theme);
    return hash;
  }
}

/** @returns {PlayPage|null} */
function openPlay() {
  try {
    const shown = new PlayPage(JSON.parse(document.getElementById("data")?.textContent ?? "{}"));
    document.documentElement.dataset.ready = "true";
    return shown;
  } catch (error) {
    confess(error);
    return null;
  }
}

/** For tests and for the curious: the playground of the page. */
Object.assign(window, { stagescope: { ground: openPlay()?.ground } });
