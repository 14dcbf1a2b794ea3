/** The page: its header, its scenes as tabs, the player below, and the loop that draws at most once a screen frame. */

import { Store } from "./blocks.js";
import { openScene } from "./clock.js";
import { themeNow } from "./colours.js";
import { aboutOf } from "./about.js";
import { count, el, nameOf } from "./dom.js";
import { DONE, statusBanner } from "./facts.js";
import { Guide } from "./guide.js";
import { helpDialog, listenToKeys } from "./keys.js";
import { confess, setTheme, titleRow } from "./page_head.js";
import { Panels } from "./panels.js";
import { PlayTab, TAB_KEYS } from "./play_tab.js";
import { ADVICE, BINDINGS } from "./report_keys.js";
import { scrubberOf } from "./scrubber.js";
import { hashWriter, readHash, Settings } from "./state.js";
import { glossaryOf, listenForTerms } from "./terms.js";

/** @typedef {import("./types.js").PageData} PageData */
/** @typedef {import("./clock.js").Scene} Scene */
/** @typedef {import("./scrubber.js").Scrubber} Scrubber */
/** @typedef {{scene: Scene, panels: Panels, scrubber: Scrubber, guide: Guide, element: HTMLElement}} Shown one scene, ready to show */

class Page {
  /** @param {PageData} data */
  constructor(data) {
    this.data = data;
    this.store = new Store();
    this.settings = new Settings();
    /** @type {Map<number, Promise<Shown>>} */
    this.opened = new Map();
    /** @type {Shown|null} */
    this.present = null;
    this.index = 0;
    this.drawing = false;
    this.help = helpDialog(BINDINGS, ADVICE);
    this.tabs = data.scenes.map((scene, i) => tab(scene.title, i, () => this.choose(i)));
    this.playTab = data.play ? new PlayTab(data.play, () => this.writeHash()) : null;
    if (this.playTab) this.tabs.push(tab("Play", this.tabs.length, () => this.choose(data.scenes.length)));
    this.body = el("div", { class: "scene", id: "scene", role: this.tabs.length > 1 ? "tabpanel" : null });
    this.dock = el("footer", { class: "dock" });
    this.writeHash = hashWriter(() => this.hash());
  }

  async start() {
    document.body.append(this.help);
    listenForTerms();
    const root = /** @type {HTMLElement} */ (document.getElementById("page"));
    root.replaceChildren(this.header(), this.body);
    root.after(this.dock);
    this.settings.on((name) => this.changed(name));
    this.settings.restore(readHash());
    this.paint();
    await this.choose(this.sceneInHash(), placeInHash());
    window.addEventListener("hashchange", () => this.follow());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour());
    listenToKeys(BINDINGS, {
      scene: () => this.stage.scene,
      scrubber: () => this.stage.scrubber,
      theme: () => this.turnTheme(),
      help: () => this.help.showModal(),
      guide: () => this.tour(),
      scenes: (step) => this.choose((this.index + step + this.tabs.length) % this.tabs.length),
    }, ({ keys }) => !this.playing || TAB_KEYS.includes(keys[0])); // prettier-ignore
  }

  header() {
    const { title, version } = this.data;
    const tabs =
      this.tabs.length > 1
        ? el(
            "div",
            { class: "tabs", role: "tablist", "aria-label": "scenes", on: { keydown: (event) => this.tabKeys(event) } },
            this.tabs,
          )
        : null;
    return el("header", { class: "page-head" }, [
      titleRow(title, version, { theme: () => this.turnTheme(), help: () => this.help.showModal(), guide: () => this.tour() }),
      tabs,
    ]);
  }

  /** @param {KeyboardEvent} event arrows move between tabs, as everywhere */
  tabKeys(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const to = (this.index + step + this.tabs.length) % this.tabs.length;
    this.choose(to);
    this.tabs[to].focus();
  }

  /** @returns {Shown} */
  get stage() {
    if (!this.present) throw new Error("the page is not ready: await stagescope.ready");
    return this.present;
  }

  /**
   * Shows a scene, building it when it is first asked for.
   * @param {number} index
   * @param {ReturnType<typeof placeInHash>} [place] where to go in it
   */
  async choose(index, place) {
    this.present?.guide.stop();
    this.present?.scrubber.stop();
    this.index = index;
    this.tabs.forEach((button, i) => {
      button.setAttribute("aria-selected", String(i === index));
      button.tabIndex = i === index ? 0 : -1;
    });
    if (this.tabs.length > 1) this.tabs[index].scrollIntoView({ block: "nearest", inline: "nearest" });
    this.body.setAttribute("aria-labelledby", `tab-${index}`);
    this.dock.hidden = this.playing;
    if (this.playing) {
      this.playTab?.show(this.body, readHash());
      return this.writeHash();
    }
    let opening = this.opened.get(index);
    if (!opening) {
      opening = this.open(index);
      this.opened.set(index, opening);
    }
    const stage = await opening;
    if (this.index !== index) return; // another tab was chosen meanwhile
    this.present = stage;
    if (place) {
      stage.scene.scale.zoom(place.window, false);
      stage.scene.go(place.frame);
    }
    this.body.replaceChildren(stage.element);
    this.dock.replaceChildren(stage.guide.element, stage.scrubber.element);
    await stage.panels.first();
    this.redraw();
    this.writeHash();
    void stage.panels.rest();
  }

  /** The guided tour of the scene that is shown. */
  tour() {
    if (!this.playing) this.present?.guide.toggle();
  }

  /** Whether the playground is shown instead of a scene. */
  get playing() {
    return this.playTab !== null && this.index === this.data.scenes.length;
  }

  /** @param {number} index @returns {Promise<Shown>} */
  async open(index) {
    const scene = await openScene(this.store, this.data.scenes[index], this.settings);
    const panels = new Panels(this.store, scene);
    const scrubber = scrubberOf(scene);
    scene.on(() => {
      this.redraw();
      this.writeHash();
    });
    scene.scale.on(() => {
      this.redraw();
      this.writeHash();
    });
    const about = aboutOf(scene);
    if (about) glossaryOf(scene).mark(about);
    const parts = [runsOf(scene, this.data.title, () => panels.toNotes()), about, statusBanner(scene), panels.element];
    const guide = new Guide(scene, scrubber, panels);
    return { scene, panels, scrubber, guide, element: el("div", { class: "scene-body" }, parts) };
  }

  /** Draws the present frame at the next chance, once, however often it is asked for. */
  redraw() {
    if (this.drawing) return;
    this.drawing = true;
    requestAnimationFrame(() => {
      this.drawing = false;
      this.present?.scrubber.show();
      this.present?.panels.show();
    });
  }

  /** @param {string} name of a choice */
  changed(name) {
    if (name === "theme") this.paint();
    this.writeHash();
  }

  paint() {
    setTheme(this.settings.get("theme"));
    this.recolour();
  }

  recolour() {
    this.playTab?.recolour();
    for (const opening of this.opened.values()) {
      opening.then(({ panels, scrubber }) => {
        panels.recolour();
        scrubber.recolour();
      });
    }
  }

  turnTheme() {
    this.settings.set("theme", themeNow() === "dark" ? "light" : "dark");
  }

  sceneInHash() {
    const index = Number(readHash().get("scene")) || 0;
    return this.tabs[index] ? index : 0;
  }

  /** The address was changed by hand or by a link. */
  async follow() {
    this.settings.restore(readHash());
    await this.choose(this.sceneInHash(), placeInHash());
  }

  hash() {
    const hash = new URLSearchParams();
    if (this.tabs.length > 1) hash.set("scene", String(this.index));
    if (this.playing) this.playTab?.write(hash);
    else hash.set("frame", String(this.present?.scene.position ?? 0));
    const zoom = this.playing ? null : this.present?.scene.scale.window;
    if (zoom) hash.set("zoom", zoom.map((time) => time.toPrecision(8)).join("~"));
    this.settings.write(hash);
    return hash;
  }
}

/** Frame and stretch of time in the address. It is read before a scene is opened: meanwhile it may be written anew. */
function placeInHash() {
  const hash = readHash();
  const [from, to] = (hash.get("zoom") ?? "").split("~").map(parseFloat);
  /** @type {[number, number]|null} */
  const window = Number.isFinite(from) && to > from && Number.isFinite(to) ? [from, to] : null;
  return { frame: Number(hash.get("frame")) || 0, window };
}

/** @param {string} title @param {number} index @param {() => void} choose */
function tab(title, index, choose) {
  return el(
    "button",
    {
      type: "button",
      role: "tab",
      class: "tab",
      id: `tab-${index}`,
      "aria-controls": "scene",
      data: { scene: index },
      on: { click: choose },
    },
    nameOf(title, 60),
  );
}

/**
 * The runs of a scene with what became of them. A name that is the title of the page is not said twice.
 * @param {Scene} scene
 * @param {string} title
 * @param {() => void} toNotes
 */
function runsOf(scene, title, toNotes) {
  const items = scene.runs.map(({ data }) => {
    const fine = DONE.includes(data.status);
    const frames = data.frames === 1 ? "1 frame" : `${count(data.frames)} frames`;
    return el("li", { class: fine ? "run" : "run wrong", title: data.reason || null }, [
      data.name === title ? null : el("strong", {}, nameOf(data.name, 80)),
      el("span", { class: "run-status" }, nameOf(data.status, 40)),
      el("span", { class: "run-frames", text: frames }),
    ]);
  });
  const notes = scene.runs.reduce((sum, { data }) => sum + data.notes.length, 0);
  const link = el("button", {
    type: "button",
    class: "to-notes",
    text: notes === 1 ? "1 note" : `${count(notes)} notes`,
    on: { click: toNotes },
  });
  return el("ul", { class: "runs", "aria-label": "runs" }, [...items, notes ? el("li", {}, link) : null]);
}

const page = new Page(JSON.parse(document.getElementById("data")?.textContent ?? "{}"));

/** For tests and for the curious: where the page stands and what it shows. Only `go` changes anything: it moves the scrubber. */
Object.assign(window, {
  stagescope: {
    ready: page.start().then(() => {
      document.documentElement.dataset.ready = "true";
    }, confess),
    scene: () => page.stage.scene,
    go: (/** @type {number} */ position) => page.stage.scene.go(position),
    time: () => page.stage.scene.time,
    value: (
      /** @type {string} */ slot,
      /** @type {number} */ run,
      /** @type {number} */ panel,
      /** @type {number} */ row,
      /** @type {number} */ column,
    ) => page.stage.panels.value(slot, run, panel, row, column),
  },
});
