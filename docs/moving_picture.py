"""Make the moving picture of the README from a real run: `python docs/moving_picture.py`.

It moves by change: between two of its frames attention changes by about the same amount.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from PIL import Image, ImageSequence

import stagescope as ss
from stagescope.papers.focus_dilution.observables import token_curves

FRAMES, HELD, PER_SECOND = 84, 12, 12
"""Frames that move, frames for which the last one is held, frames a second."""
PALETTE = 128
COLOURS = ("#1a1a1a", "#0072b2", "#d55e00", "#009e73")
SAYS = {
    "condensation": "embeddings condense, attention stands still",
    "focus": "attention focuses on the frequent token",
    "dilution": "attention spreads again",
    "lifting": "a second direction opens",
}
FIRST = 20.0


def moving_picture() -> FuncAnimation:
    run = ss.run_study("focus-dilution", "ref", frames=20 * FRAMES, progress=False)
    curves, stages = token_curves(run), ss.stages(run)
    moved = np.concatenate([[0.0], np.sqrt((np.diff(curves.attention, axis=0) ** 2).sum((1, 2))).cumsum()])
    shown = np.searchsorted(moved, np.linspace(0.0, moved[-1], FRAMES))
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.9), width_ratios=(1, 1.9), dpi=100)
    figure.subplots_adjust(left=0.07, right=0.975, top=0.8, bottom=0.17, wspace=0.22)
    image = left.imshow(curves.attention[0], vmin=0, vmax=1, cmap="Blues")
    left.set(xlabel="attends to token", ylabel="query", xticks=range(4), yticks=range(4))
    cells = [[left.text(j, i, "", ha="center", va="center", fontsize=8) for j in range(4)] for i in range(4)]
    for row, colour in enumerate(COLOURS):
        right.plot(curves.time, curves.attention[:, row, curves.frequent], color=colour, lw=1.7, label=f"query {row}")
    for stage in (stage for stage in stages if not stage.track):
        right.axvline(max(stage.start, FIRST), color="0.75", lw=0.8, zorder=0)
    right.set(xscale="log", xlim=(FIRST, curves.time[-1]), ylim=(-0.02, 1.04), xlabel="training time $t$")
    right.set_xticks([20, 50, 100, 200, 500, 800], labels=["20", "50", "100", "200", "500", "800"])
    right.minorticks_off()
    right.set_title("attention on token 0, the frequent one", fontsize=9, loc="left")
    right.legend(frameon=False, fontsize=8, loc="lower left", ncols=2, handlelength=1.0, columnspacing=1.0)
    now = right.axvline(FIRST, color="0.2", lw=1.2)
    title = figure.text(0.07, 0.93, "", fontsize=11, va="center")

    def draw(number: int) -> None:
        frame = shown[min(number, FRAMES - 1)]
        when, matrix = curves.time[frame], curves.attention[frame]
        image.set_data(matrix)
        for i, j in ((i, j) for i in range(4) for j in range(4)):
            cells[i][j].set(text=f"{matrix[i, j]:.2f}".lstrip("0"), color="white" if matrix[i, j] > 0.55 else "0.2")
        now.set_xdata([max(when, FIRST)] * 2)
        stage = [stage.name for stage in stages if stage.start <= when and not stage.track][-1]
        title.set_text(f"$t$ = {when:.0f}   {stage}: {SAYS.get(stage, 'the cycle repeats')}")

    for spine in ("top", "right"):
        right.spines[spine].set_visible(False)
    return FuncAnimation(figure, draw, frames=FRAMES + HELD)


def shrink(place: Path) -> None:
    """Write a GIF again with one palette for all frames: it is a third of the size."""
    with Image.open(place) as made:
        frames = [frame.convert("RGB") for frame in ImageSequence.Iterator(made)]
        times = [frame.info["duration"] for frame in ImageSequence.Iterator(made)]
    sheet = Image.new("RGB", (frames[0].width, frames[0].height * len(frames[::8])))
    for number, frame in enumerate(frames[::8]):
        sheet.paste(frame, (0, number * frame.height))
    palette = sheet.quantize(PALETTE)
    small = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    small[0].save(place, save_all=True, append_images=small[1:], duration=times, loop=0, optimize=True)


if __name__ == "__main__":
    place = Path(__file__).parent / "focus-and-dilution.gif"
    moving_picture().save(place, writer=PillowWriter(fps=PER_SECOND))
    shrink(place)
    print(f"{place.name}: {place.stat().st_size / 1e6:.2f} MB")
