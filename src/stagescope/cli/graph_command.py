"""`stagescope graph`: the saddle graph of a run's loss. Heavy imports are inside, as in all commands."""

from pathlib import Path
from typing import Annotated

import tyro
from pydantic import Field

from stagescope.cli.command import OWN_OBJECTIVE, Command, OwnObjective, RunFolder, objective, print_json


class Graph(Command):
    """The critical points of a small loss, what opens at each and where it leads, from those a run passed. Experimental."""

    folder: RunFolder
    objective: OwnObjective = OWN_OBJECTIVE
    figure: Path | None = Field(None, description="write STEM.pdf, STEM.svg and STEM.png, with the nodes the run passed")
    json_: Annotated[bool, tyro.conf.arg(name="json")] = Field(False, description="print as JSON")

    def run(self) -> int:
        from stagescope.landscape.critical import critical_points
        from stagescope.landscape.saddle_graph import saddle_graph
        from stagescope.papers.rebuild import field_of
        from stagescope.runs.store import load

        run = load(self.folder)
        law = field_of(run.spec, objective(self.objective))
        passed = [point for point in critical_points(run, law) if point.found]
        graph = saddle_graph(law, passed[0].params if passed else run.at(0))
        visited, missing = graph.visited(passed), graph.missing(passed)
        if self.figure is not None:
            from stagescope.views.saddle_graph import save_graph

            save_graph(graph, self.figure, visited)
        if self.json_:
            print_json({**graph.json(), "visited": list(visited), "missing": missing})
        else:
            print(graph)
            print(f"the run passed {', '.join(map(str, visited)) or 'none of them'}")
            if missing:
                print(f"not in the graph: {missing} of {len(passed)} critical points that the run passed")
        return 0
