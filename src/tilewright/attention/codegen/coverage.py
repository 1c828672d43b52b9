"""What has no kernels, with its reason."""

from collections.abc import Callable
from typing import NamedTuple

from tilewright.attention.graph import FORMAT, Graph
from tilewright.errors import CodegenError


class Refusal(NamedTuple):
    """What some graphs have that kernels cannot do."""

    found: str
    expected: str
    fix: str
    holds: Callable[[Graph], bool]


REFUSALS = (
    Refusal(
        "keys and values in whole numbers",
        "a float type: kernels have no scales of pages",
        "keep them in float8_e4m3, or use the reference backend, which has scales",
        lambda graph: graph.geometry.kv_dtype.is_integer,
    ),
    Refusal(
        "a request cache",
        "state of pages, which kernels keep in pools",
        "run this flow on the reference backend, or keep the value per page in create_cache",
        lambda graph: any(state.type.format is FORMAT.SLOTTED for state in graph.states),
    ),
    Refusal(
        "estimates alone",
        "a branch that reads pages, since dense rows are its attention over all of them",
        "run this flow on the reference backend",
        lambda graph: all(branch.selection is None for branch in graph.output.branches),
    ),
)
"""All that a verified graph is refused for."""


def check_supported(graph: Graph) -> None:
    for refusal in REFUSALS:
        if refusal.holds(graph):
            where = f"flow {graph.name!r}"
            raise CodegenError(where, refusal.found, refusal.expected, refusal.fix)
