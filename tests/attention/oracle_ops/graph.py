"""A whole graph on one request, node by node with the definitions of the table.

Slow on purpose: it knows nothing of pools, plans or tiles. All KV heads go step by step together,
because an op may look across them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.attention.oracle_ops.attention import token_list
from tests.attention.oracle_ops.linear import dot
from tests.attention.oracle_ops.rounding import FORMATS, round_to
from tests.attention.oracle_ops.row import AnyArray, Array, OracleRow, Positions
from tests.attention.oracle_ops.selection import pages_of
from tests.attention.oracle_ops.table import ORACLES
from tilewright.attention.graph import (
    Branch,
    EstimateOver,
    FlowKind,
    Graph,
    Node,
    Side,
    ValueType,
    walk,
)


@dataclass(frozen=True, slots=True)
class Request:
    """One request: keys and values [heads, T, D], queries of the decode steps [heads, N, G, D].

    Step t sees ``prompt_tokens + t + 1`` tokens. ``prompt_queries`` [heads, P, G, D] are those of
    the prompt; only feedback from the prompt needs them. ``inputs`` [heads, N, r, c] are what a
    flow declares beside the query.
    """

    keys: Array
    values: Array
    queries: Array
    prompt_tokens: int
    budget: int
    first_reserved: int = 1
    last_reserved: int = 1
    scale: float | None = None
    advances_every_page: bool = False  # else state advances as in Vortex
    prompt_queries: Array | None = None
    inputs: Mapping[str, Array] = field(default_factory=dict)
    layer: int = 0


@dataclass(frozen=True, slots=True)
class HeadStep:
    """What one KV head has at one step: pages read by each query head, output, mass, values.

    ``kept`` are fields and, as the next step will read them, states of finished pages [n, r, c].
    """

    pages: tuple[list[int], ...]  # of the first branch with a selection
    out: Array  # [G, Dv]
    mass: Array  # [pages, G]
    values: Mapping[Node, AnyArray]
    kept: Mapping[str, AnyArray]


@dataclass(eq=False)
class Head:
    """What a KV head keeps between steps."""

    fields: dict[str, list[AnyArray]]  # of finished pages
    states: dict[str, AnyArray]
    mass: Array


def run_graph(graph: Graph, request: Request) -> Iterator[list[HeadStep]]:
    """All steps; of each step all KV heads."""
    heads = [
        Head({}, {}, np.zeros((0, graph.geometry.query_heads)))
        for _ in range(request.keys.shape[0])
    ]
    for step in range(request.queries.shape[1]):
        rows = [row_at(graph, request, step, head) for head in range(len(heads))]
        for row, head in zip(rows, heads, strict=True):
            finish_pages(graph, request, row, head)
        values = evaluate(graph, request, rows, heads)
        results = []
        for row, head, known in zip(rows, heads, values, strict=True):
            pages, out, head.mass = attend(graph, request, row, known)
            save(graph, request, row, head, known)
            fields = {name: np.concatenate(kept) for name, kept in head.fields.items() if kept}
            results.append(HeadStep(pages, out, head.mass, known, fields | head.states))
        yield results


def row_at(graph: Graph, request: Request, step: int, head: int) -> OracleRow:
    size = graph.geometry.page_size
    num_tokens = request.prompt_tokens + step + 1
    return OracleRow(
        num_pages=-(-num_tokens // size),
        first_reserved=request.first_reserved,
        last_reserved=request.last_reserved,
        block_size=size,
        last_page_tokens=(num_tokens - 1) % size + 1,
        budget=request.budget,
        step=step,
        layer=request.layer,
        head=head,
        query_heads=graph.geometry.query_heads,
    )


def num_finished(row: OracleRow) -> int:
    return row.num_pages - (row.last_page_tokens < row.block_size)


def page_tokens(row: OracleRow, tokens: Array, page: int) -> Array:
    """[1, page size, D]; what is not there yet is NaN, so that nobody can use it."""
    out = np.full((1, row.block_size, tokens.shape[1]), np.nan)
    start = page * row.block_size
    count = row.tokens_in(page)
    out[0, :count] = tokens[start : start + count]
    return out


def reserved(graph: Graph, request: Request, row: OracleRow, page: int) -> dict[str, Array]:
    if graph.geometry.kind is FlowKind.MLA:
        return {"latent": page_tokens(row, request.keys[row.head], page)}
    return {
        "k": page_tokens(row, request.keys[row.head], page),
        "v": page_tokens(row, request.values[row.head], page),
    }


def finish_pages(graph: Graph, request: Request, row: OracleRow, head: Head) -> None:
    """Runs the cache side on pages that have become complete; state of new pages begins."""
    writes = {write.target: write.value for write in graph.field_writes}
    for name, value in writes.items():
        kept = head.fields.setdefault(name, [])
        for page in range(len(kept), num_finished(row)):
            found = cache_value(graph, request, row, page, value)
            kept.append(stored(graph, name, found))
    for state in graph.states:
        known = head.states.get(state.name, np.zeros((0, *state.type.shape)))
        fresh = [
            head.fields[state.name][page]
            if state.name in writes
            else np.full((1, *state.type.shape), state.initial)
            for page in range(len(known), num_finished(row))
        ]
        head.states[state.name] = np.concatenate([known, *fresh])


def cache_value(graph: Graph, request: Request, row: OracleRow, page: int, root: Node) -> AnyArray:
    """What the cache side computes for one page, with the tokens that are there."""
    inside = OracleRow(
        num_pages=page + 1,
        block_size=row.block_size,
        last_page_tokens=row.tokens_in(page),
        layer=row.layer,
        head=row.head,
        query_heads=row.query_heads,
        page=page,
    )
    sources = reserved(graph, request, inside, page) | parameters(graph, row.layer)
    known: dict[Node, AnyArray] = {}
    for node in walk((root,)):
        known[node] = value_of(node, inside, known, sources)
    return known[root]


def kept_types(graph: Graph) -> dict[str, ValueType]:
    fields = {item.name: item.type for item in graph.fields}
    return fields | {item.name: item.type for item in graph.states}


def stored(graph: Graph, name: str, value: AnyArray) -> AnyArray:
    """As the field keeps it: its shape, its element type."""
    kind = kept_types(graph)[name]
    whole = np.broadcast_to(value, (len(value), *kind.shape))
    return round_to(kind.dtype, whole.astype(np.float64)) if kind.dtype in FORMATS else whole


def parameters(graph: Graph, layer: int) -> dict[str, Array]:
    out = {}
    for item in graph.parameters:
        table = np.asarray(item.values, dtype=np.float64)
        out[item.name] = table[None] if not item.num_layers else table[layer : layer + 1]
    return out


def value_of(
    node: Node, row: OracleRow, known: Mapping[Node, AnyArray], sources: Mapping[str, AnyArray]
) -> AnyArray:
    attributes = node.op.attributes()
    operands = [known[item] for item in node.inputs]
    axes = tuple(item.type.token_axes for item in node.inputs)
    if "variable" in attributes:
        operands, axes = [sources[str(attributes["variable"])]], (node.type.token_axes,)
    out: AnyArray = ORACLES[node.op.name](row, *operands, token_axes=axes, **attributes)
    return out


def sources_of(graph: Graph, request: Request, row: OracleRow, head: Head) -> dict[str, AnyArray]:
    """Everything that a leaf of the indexer side can read."""
    found: dict[str, AnyArray] = {"q": request.queries[row.head, row.step][None]}
    found |= {name: given[row.head, row.step][None] for name, given in request.inputs.items()}
    found |= parameters(graph, row.layer)
    pages = [reserved(graph, request, row, page) for page in range(row.num_pages)]
    for name in pages[0]:
        found[name] = np.concatenate([page[name] for page in pages])
    for item in graph.fields:
        if item.name not in found:
            kept = [*head.fields.get(item.name, []), *running(graph, request, row, item.name)]
            empty = np.full((1, *item.type.shape), item.initial)
            found[item.name] = np.concatenate([*kept, *[empty] * (row.num_pages - len(kept))])
    for state in graph.states:
        known = head.states[state.name]
        rest = np.full((row.num_pages - len(known), *state.type.shape), state.initial)
        whole = np.concatenate([known, rest])
        found[state.name] = whole.astype(bool) if state.type.dtype == "bool" else whole
    return found


def running(graph: Graph, request: Request, row: OracleRow, name: str) -> list[AnyArray]:
    """The summary of an unfinished last page, for flows that ask for it."""
    writes = [write.value for write in graph.field_writes if write.target == name]
    if not graph.partial_pages or not writes or num_finished(row) == row.num_pages:
        return []
    value = cache_value(graph, request, row, row.num_pages - 1, writes[0])
    return [stored(graph, name, value)]


def evaluate(
    graph: Graph, request: Request, rows: list[OracleRow], heads: list[Head]
) -> list[dict[Node, AnyArray]]:
    sources = [sources_of(graph, request, row, head) for row, head in zip(rows, heads, strict=True)]
    known: list[dict[Node, AnyArray]] = [{} for _ in rows]
    for node in graph.nodes(Side.INDEXER):
        for row, head, values, found in zip(rows, heads, known, sources, strict=True):
            values[node] = indexer_value(node, request, row, head, values, found, known)
    return known


def indexer_value(
    node: Node,
    request: Request,
    row: OracleRow,
    head: Head,
    values: Mapping[Node, AnyArray],
    sources: Mapping[str, AnyArray],
    everyone: Sequence[Mapping[Node, AnyArray]],
) -> AnyArray:
    """Ops that look outside their row get what they look at."""
    outside: list[Any]
    match node.op.name:
        case "AcrossHeads":
            outside = [other[node.inputs[0]] for other in everyone]
        case "AttentionMass":
            outside = [head.mass]
        case "PromptMass":
            assert request.prompt_queries is not None
            keys = request.keys[row.head, : request.prompt_tokens]
            outside = [request.prompt_queries[row.head], keys]
        case _:
            return value_of(node, row, values, sources)
    out: AnyArray = ORACLES[node.op.name](row, *outside, **node.op.attributes())
    return out


def save(
    graph: Graph, request: Request, row: OracleRow, head: Head, known: Mapping[Node, AnyArray]
) -> None:
    """The next step reads this: of covered pages the new value, of other finished ones the old."""
    for write in graph.state_writes:
        value = known[write.value]
        whole = np.broadcast_to(value, (row.num_pages, *value.shape[1:]))
        count = num_finished(row)
        if not request.advances_every_page and write.target.isidentifier():  # a Save of the flow
            count = row.num_pages - row.last_reserved if selects(row) else 0
        old = head.states[write.target]
        new = stored(graph, write.target, whole[:count])
        head.states[write.target] = np.concatenate([new, old[count:]])


def selects(row: OracleRow) -> bool:
    """Whether the row has more pages than its budget and the reserved ones."""
    return row.num_pages > row.budget + row.first_reserved + row.last_reserved


def attend(
    graph: Graph, request: Request, row: OracleRow, known: Mapping[Node, AnyArray]
) -> tuple[tuple[list[int], ...], Array, Array]:
    """Pages of each query head, output and mass: the sum of all branches."""
    geometry = graph.geometry
    out = np.zeros((geometry.query_heads, geometry.value_dim))
    mass = np.zeros((row.num_pages, geometry.query_heads))
    pages: list[list[int]] = []
    for branch in graph.output.branches:
        for head in range(geometry.query_heads):
            chosen = np.zeros(0, dtype=np.int64)
            if branch.selection is not None:
                chosen = pages_of(row, whole_selection(row, known[branch.selection]), head)
                pages.append([int(page) for page in chosen])
            part, weights = attend_branch(graph, request, row, known, branch, chosen, head)
            gate = 1.0
            if branch.gate is not None:
                table = known[branch.gate]
                gate = float(table[0, min(head, table.shape[1] - 1), 0])
            out[head] += gate * part
            mass[:, head] += weights
    return tuple(pages[: geometry.query_heads]), out, mass


def whole_selection(row: OracleRow, selection: AnyArray) -> AnyArray:
    out: AnyArray = np.broadcast_to(selection, (row.num_pages, *selection.shape[1:]))
    return out


def attend_branch(
    graph: Graph,
    request: Request,
    row: OracleRow,
    known: Mapping[Node, AnyArray],
    branch: Branch,
    chosen: Positions,
    head: int,
) -> tuple[Array, Array]:
    """One softmax over tokens of chosen pages and over estimates: output, and mass by page."""
    keys = request.keys[row.head]
    mla = graph.geometry.kind is FlowKind.MLA
    values = keys[:, : graph.geometry.value_dim] if mla else request.values[row.head]
    scale = keys.shape[1] ** -0.5 if request.scale is None else request.scale
    query = request.queries[row.head, row.step, head]
    terms = [
        (scale * dot(query, keys[token]), values[token], token // row.block_size)
        for token in token_list(row, chosen)
    ]
    if branch.estimate is not None:
        logits, summaries = known[branch.estimate.logits], known[branch.estimate.values]
        for page, entry in np.ndindex(row.num_pages, logits.shape[1]):
            if branch.estimate.over is EstimateOver.ALL or page not in chosen:
                terms.append((float(logits[page, entry, head]), summaries[page, entry], -1))
    mass = np.zeros(row.num_pages)
    out = np.zeros(graph.geometry.value_dim)
    top = max(logit for logit, _, _ in terms)
    total = sum(np.exp(logit - top) for logit, _, _ in terms)
    for logit, value, page in terms:
        weight = np.exp(logit - top) / total
        out += weight * value
        if page >= 0:
            mass[page] += weight
    return out, mass
