/** The tab of a report in which the flow of its runs is played. The playground is made when it is first shown. */

import { Playground } from "./play_ground.js";

/** Keys of a report that hold in this tab; the others would move the runs behind it. */
export const TAB_KEYS = ["s", "d", "?"];

const PREFIX = "play-"; // of its names in the address of a report

export class PlayTab {
  /** @param {import("./play_types.js").PlayData} data @param {() => void} changed */
  constructor(data, changed) {
    this.data = data;
    this.changed = changed;
    /** @type {Playground|null} */
    this.ground = null;
  }

  /** @param {Element} place @param {URLSearchParams} hash */
  show(place, hash) {
    const laws = /** @type {any} */ (globalThis).stagescopeLaws;
    const ground = (this.ground ??= new Playground(this.data, laws, this.changed));
    place.replaceChildren(ground.element);
    if (hash.has(`${PREFIX}study`) || !ground.played) ground.read(hash, PREFIX);
  }

  recolour() {
    this.ground?.redraw();
  }

  /** @param {URLSearchParams} hash */
  write(hash) {
    this.ground?.write(hash, PREFIX);
  }
}
