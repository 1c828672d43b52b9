"""The page ``docs/flows.md``: what each ready flow does, keeps and comes from."""

from collections.abc import Iterable

from tilewright.attention.flow import FlowBase, trace_flow
from tilewright.attention.flow.registry import get
from tilewright.attention.flows.ready import flow_summary
from tilewright.attention.graph import DType, FlowKind, Geometry, Graph, ValueType

GQA = Geometry.gqa(page_size=16, head_dim=128, query_heads=4)
MLA = Geometry.mla(page_size=16, kv_lora_rank=512, qk_rope_head_dim=64, query_heads=4)

HEAD = """# Ready flows

Generated from the flows themselves; a test keeps it current. Each name works with
`tilewright attention run --flow NAME`, and each family is one file of `tilewright.attention.flows`
whose docstrings hold the whole formulas.

*Kept* is what a page has beside keys and values, in bfloat16 where no type is named: summaries are
shared with the page, state (marked so) is private to a request. *Bytes* are those of a page of 16
tokens with heads of 128 channels and 4 query heads a KV head; its keys and values take 8192 bytes.
Under MLA a page has latents of 512 + 64 channels and 4 query heads; they take 18432 bytes. *Group*
says how the query heads of a row agree. P is a page, q_g a query of the group, c_P the mean key of
the page.

A flow may take arguments, and a learned one takes its weights; without them they are drawn from a
seed, and the flow says so.

Every flow has kernels: `tilewright attention compile NAME` prints them. Each is held to the
reference in float32 and float16 under Triton's interpreter, the stateful ones over several steps.
Triton's compiler makes GPU code of every op; no GPU has run it.

```python
>>> import tilewright.attention.flows  # registers them
>>> from tilewright.attention.flow import build_vflow
>>> build_vflow("twilight", {"base": "moba", "p": 0.9}).base
<tilewright.attention.flows.centroid.MoBA object at 0x...>
>>> build_vflow("nsa", {"seed": 3}).weights_label
'seeded random (seed 3)'

```
"""


def flow_page(names: Iterable[str]) -> str:
    """The page for the flows registered under ``names``."""
    flows = {name: get(name)() for name in sorted(names)}
    parts = [HEAD]
    for title, kind in (
        ("Grouped-query attention", FlowKind.GQA),
        ("Latent attention (MLA)", FlowKind.MLA),
    ):
        rows = [_row(name, flow) for name, flow in flows.items() if flow.kind is kind]
        parts.append("\n".join([f"## {title}", "", *_table_head(), *rows, ""]))
    return "\n".join(parts)


def _table_head() -> list[str]:
    columns = ("name", "rule", "group", "kept", "bytes", "weights", "paper")
    return [_line(columns), _line(["---"] * len(columns))]


def _row(name: str, flow: FlowBase) -> str:
    graph = trace_flow(flow, GQA if flow.kind is FlowKind.GQA else MLA)
    rule = flow_summary(type(flow))
    facts = (getattr(flow, fact, "") for fact in ("group", "weights_label", "paper"))
    group, weights, paper = (str(fact) for fact in facts)
    cells = (
        f"`{name}`",
        f"`{rule}`",
        group,
        _kept(graph),
        str(_num_bytes(graph)),
        weights or "none",
        paper,
    )
    return _line(cell.replace("|", "\\|") for cell in cells)


def _kept(graph: Graph) -> str:
    own = [item for item in graph.fields if item.name not in graph.geometry.reserved_fields]
    summaries = [f"{item.name} {_size(item.type)}" for item in own]
    states = [f"{item.name} {_size(item.type)}, state" for item in graph.states]
    return "; ".join([*summaries, *states]) or "nothing"


def _num_bytes(graph: Graph) -> int:
    own = [item.type for item in graph.fields if item.name not in graph.geometry.reserved_fields]
    return sum(kind.num_bytes for kind in (*own, *(state.type for state in graph.states)))


def _size(kind: ValueType) -> str:
    shape = "x".join(str(size) for size in kind.shape)
    return shape if kind.dtype is DType.BFLOAT16 else f"{shape} {kind.dtype}"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
