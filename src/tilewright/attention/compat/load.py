"""Flows by file or name, with the names of Vortex at hand."""

from collections.abc import Mapping
from pathlib import Path

from tilewright.attention.compat.alias import vortex_names
from tilewright.attention.flow.flow import FlowBase
from tilewright.attention.flow.loader import load_flow_file, make_flow
from tilewright.attention.flow.registry import get, list_keys
from tilewright.errors import FlowLoadError

__all__ = ("find_flow", "load_flows")


def load_flows(path: str | Path) -> Mapping[str, type[FlowBase]]:
    """The flows that a file registers. It may import tilewright's names or Vortex's."""
    return load_flow_file(path, vortex_names)


def find_flow(
    flow: str, init_kwargs: Mapping[str, object] | None = None, *, name: str | None = None
) -> tuple[str, FlowBase]:
    """A ready flow by name, or the flow of a file (``name`` picks one of several).

    Whatever ends in ``.py`` or has a path separator is a file.
    """
    if not (flow.endswith(".py") or "/" in flow):
        if name is not None and name != flow:
            expected, fix = "a name for a flow of a file", "leave the name out, or give the file"
            raise FlowLoadError(f"flow {flow!r}", f"the name {name!r} beside it", expected, fix)
        return flow, make_flow(flow, get(flow), init_kwargs)
    flows = load_flows(flow)
    if name is None and len(flows) > 1:
        expected, fix = "the name of one of them", "say which"
        raise FlowLoadError(flow, f"flows {', '.join(flows)}", expected, fix)
    chosen = name or next(iter(flows))
    if chosen not in flows:
        fix = f"ready flows are {', '.join(list_keys())}"
        raise FlowLoadError(flow, f"no flow {chosen!r}", f"one of {', '.join(flows)}", fix)
    return chosen, make_flow(chosen, flows[chosen], init_kwargs)
