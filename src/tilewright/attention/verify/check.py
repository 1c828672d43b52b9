"""Flow files: which flows they register, and what is wrong or doubtful about each."""

from collections.abc import Mapping
from types import MappingProxyType

from tilewright.attention.flow import FlowBase, examine_flow, make_flow
from tilewright.attention.flow.lint import Lint
from tilewright.attention.graph import FORMAT, FlowKind, Geometry, graph_hash
from tilewright.attention.passes import optimize_graph
from tilewright.errors import FlowError, TilewrightError
from tilewright.records.attention.flow import FlowCheckRow, FlowProblem, FlowWarning

ROPE_WIDTH = 64  # of DeepSeek's latents


def geometries(
    *, page_size: int = 16, head_dim: int | None = None, query_heads: int | None = None
) -> Mapping[FlowKind, Geometry]:
    """A geometry for each kind of flow. What is not said is common: 128 wide keys of 4 query heads,
    and under MLA latents of 512 + 64 for 16. ``head_dim`` is the whole width of a latent; a narrow
    one has a single channel beside its positions.
    """
    latent = 512 + ROPE_WIDTH if head_dim is None else head_dim
    return MappingProxyType(
        {
            FlowKind.GQA: Geometry.gqa(
                page_size=page_size, head_dim=head_dim or 128, query_heads=query_heads or 4
            ),
            FlowKind.MLA: Geometry.mla(
                page_size=page_size,
                kv_lora_rank=max(latent - ROPE_WIDTH, 1),
                qk_rope_head_dim=min(ROPE_WIDTH, latent - 1) if latent > 1 else 0,
                query_heads=query_heads or 16,
            ),
        }
    )


DEFAULT_GEOMETRIES: Mapping[FlowKind, Geometry] = geometries()
"""What flows are checked for unless told otherwise."""


def check_flows(
    flows: Mapping[str, type[FlowBase]],
    geometries: Mapping[FlowKind, Geometry] = DEFAULT_GEOMETRIES,
) -> tuple[FlowCheckRow, ...]:
    """Construct, trace and optimize each flow; errors become rows."""
    return tuple(check_flow(name, flow, geometries[flow.kind]) for name, flow in flows.items())


def check_flow(name: str, flow: type[FlowBase], geometry: Geometry) -> FlowCheckRow:
    try:
        graph, warnings = examine_flow(make_flow(name, flow), geometry, name=name)
        canonical = optimize_graph(graph)
    except TilewrightError as error:
        return FlowCheckRow(
            name=name, kind=flow.kind.value, ok=False, errors=(_problem(error),), warnings=()
        )
    types = [item.type for item in graph.fields] + [item.type for item in graph.states]
    return FlowCheckRow(
        name=name,
        kind=flow.kind.value,
        ok=True,
        errors=(),
        warnings=tuple(map(_warning, warnings)),
        graph_hash=graph_hash(canonical),
        states=tuple(state.name for state in graph.states),
        bytes_per_page=sum(kind.num_bytes for kind in types if kind.format is not FORMAT.SLOTTED),
    )


def _problem(error: TilewrightError) -> FlowProblem:
    flow = error if isinstance(error, FlowError) else FlowError("", "", "", "")
    return FlowProblem(
        type=type(error).__name__,
        where=error.where,
        found=error.found,
        expected=error.expected,
        fix=error.fix,
        method=flow.method,
        line=flow.source,
        op=flow.op,
        operand=flow.operand,
    )


def _warning(lint: Lint) -> FlowWarning:
    return FlowWarning(code=lint.code, line=lint.source, text=lint.text)
