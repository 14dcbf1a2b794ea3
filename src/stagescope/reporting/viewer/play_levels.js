/** Levels of a plot of a playground: dashed lines, with their names where curves leave room. */

import { short } from "./dom.js";

const NAME_PLACES = [1, 0.75, 0.5, 0.25, 0]; // along the axis, the best first
const NAME_LOOKS = [0, 0.2, 0.4, 0.6, 0.8, 1]; // along a name, where it is looked for curves
const NAME_HEIGHT = 14; // px
const ROOM_ENOUGH = 12; // px between the middle of a name and the next curve: more is no better

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {{name: string, value: number}[]} levels
 * @param {{left: number, top: number, width: number, height: number}} box
 * @param {import("./traces.js").Axis} y
 * @param {import("./play_plot.js").Palette} palette
 * @param {(share: number) => number[]} heights of the curves at a share of the width
 */
export function drawPlayLevels(pen, levels, box, y, palette, heights) {
  const { left, top, width, height } = box;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  let free = Infinity;
  for (const { name, value } of [...levels].sort((a, b) => a.value - b.value)) {
    const at = Math.round(top + height * (1 - y.at(value))) + 0.5;
    pen.strokeStyle = palette.muted;
    pen.setLineDash([5, 4]);
    pen.beginPath();
    pen.moveTo(left, at);
    pen.lineTo(left + width, at);
    pen.stroke();
    pen.setLineDash([]);
    if (at > free) continue;
    const text = `${name} = ${short(value, 3)}`;
    const length = Math.min(1, (pen.measureText(text).width + 6) / width);
    const middle = at + (at - NAME_HEIGHT < top ? 1 : -1) * (NAME_HEIGHT / 2);
    const place = bestPlace(length, (share) => heights(share).map((each) => Math.abs(top + height * (1 - each) - middle)));
    pen.lineWidth = 3;
    pen.strokeStyle = palette.paper;
    pen.strokeText(text, left + place * width + 3, middle);
    pen.lineWidth = 1;
    pen.fillStyle = palette.muted;
    pen.fillText(text, left + place * width + 3, middle);
    free = Math.min(at, middle) - NAME_HEIGHT / 2 - 8;
  }
}

/** Where a name of some length begins so that curves are far from it. @param {number} length share of the width @param {(share: number) => number[]} far px from the curves */
function bestPlace(length, far) {
  const places = NAME_PLACES.map((place) => place * (1 - length));
  const rooms = places.map((from) => Math.min(ROOM_ENOUGH, ...NAME_LOOKS.flatMap((look) => far(from + look * length)).filter((room) => !Number.isNaN(room))));
  return places[rooms.indexOf(Math.max(...rooms))];
}
