"""The passes, in the order in which they run."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tilewright.attention.graph import Graph, verify_graph
from tilewright.attention.passes.exact import (
    canonical_form,
    common_subexpression,
    dead_code,
    infer_types,
)
from tilewright.attention.passes.rounding import hoist_query, split_bound
from tilewright.errors import GraphError, InternalError


class Pass(NamedTuple):
    """Graph to graph. An exact pass keeps values bit for bit; others change rounding."""

    name: str
    run: Callable[[Graph], Graph]
    exact: bool


PASSES: tuple[Pass, ...] = (
    Pass("infer_types", infer_types, exact=True),
    Pass("canonical_form", canonical_form, exact=True),
    Pass("common_subexpression", common_subexpression, exact=True),
    Pass("hoist_query", hoist_query, exact=False),
    Pass("split_bound", split_bound, exact=False),
    Pass("canonical_form", canonical_form, exact=True),
    Pass("common_subexpression", common_subexpression, exact=True),
    Pass("dead_code", dead_code, exact=True),
)


def optimize_graph(graph: Graph, passes: Sequence[Pass] = PASSES) -> Graph:
    """Run passes one after the other; the graph is verified before and after each."""
    for item in passes:
        graph = run_pass(item, graph)
    return graph


def run_pass(item: Pass, graph: Graph) -> Graph:
    """One pass between two verifications. A graph that it breaks is a bug of the pass."""
    verify_graph(graph)
    result = item.run(graph)
    try:
        verify_graph(result)
    except GraphError as error:
        fix = "correct the pass"
        raise InternalError(f"pass {item.name}", str(error), "a valid graph", fix) from error
    return result
