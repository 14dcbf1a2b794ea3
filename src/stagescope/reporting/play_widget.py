"""The playground as an anywidget. Its options, events and curves are readable from Python; setting options moves its sliders."""

from typing import Any

import anywidget
import numpy as np
import traitlets

from stagescope.reporting.bundle import viewer_script, viewer_style


class PlayWidget(anywidget.AnyWidget):
    """A playground in a notebook.

    `options` has the study and its options as they are set; assign a dictionary to it to move sliders. `events` are the times
    of events, None for those that did not come. `arrays` has the curves of the flow, `t` first, computed to the relative
    `tolerance`. `command` computes it exactly. Events and curves follow when a slider rests.
    """

    options = traitlets.Dict({}).tag(sync=True)
    events = traitlets.Dict({}).tag(sync=True)
    command = traitlets.Unicode("").tag(sync=True)
    tolerance = traitlets.Float(0.0).tag(sync=True)
    _esm = traitlets.Unicode("").tag(sync=True)
    _data = traitlets.Dict({}).tag(sync=True)
    _style = traitlets.Unicode("").tag(sync=True)
    _arrays = traitlets.Dict({}).tag(sync=True)

    @classmethod
    def of(cls, data: dict[str, Any], laws: str) -> "PlayWidget":
        """A widget of what `play_data` and `laws_script` give."""
        module = f"{laws}\n{viewer_script('play_widget')}\nexport default {{ render: renderPlay }};\n"
        first = data["studies"][0]
        preset, start = first["presets"][first["start"]["preset"]], first["start"]["options"]
        options = {**preset["options"], "until": preset["until"], "seed": 0, **start}
        return cls(_esm=module, _data=data, _style=widget_style(), options=options)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The curves by name: t, loss, and PANEL/CURVE of the others. Empty until the widget has been shown."""
        return {name: np.frombuffer(bytes(block), dtype="<f8") for name, block in self._arrays.items()}


def widget_style() -> str:
    """The styles of the page for a box inside a shadow root, which has no document of its own."""
    text = viewer_style("style", "panels", "play")
    for page, box in ((":root", ".play-widget"), ("html {", ".play-widget {"), ("body {", ".play-widget-body {")):
        text = text.replace(page, box)
    return text + "\n.play-widget { display: block; padding: 4px 8px; }\n.play-controls { max-height: 720px; }\n"
