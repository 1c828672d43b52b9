"""The arrays behind the pages: keys, values and summaries of every layer; states by name."""

from collections.abc import Iterable, Mapping

import numpy as np

from tilewright.attention.backends.generated import pooled
from tilewright.attention.backends.reference.namespace import Array, Namespace
from tilewright.attention.backends.reference.pages import STAGED_DTYPE, PagedField, page_codes_of
from tilewright.attention.graph import DType, Graph
from tilewright.attention.ops.leaf import prompt_windows
from tilewright.attention.paging import ExtendPlan, PagingSpec, StateField

MASS = "#mass"  # names of flows are Python identifiers, so these cannot clash with them


def selection_name(branch: int) -> str:
    return f"#selection{branch}"


def prompt_mass_name(window: int) -> str:
    return f"#prompt_mass{window}"


def kept_fields(graph: Graph, namespace: Namespace) -> tuple[StateField, ...]:
    """State variables of the flow, masses, and the last selections."""
    float32, boolean = namespace.dtypes[DType.FLOAT32], namespace.dtypes[DType.BOOL]
    heads = graph.geometry.query_heads
    fields = [
        StateField(state.name, state.type.shape, namespace.dtypes[state.type.dtype])
        for state in graph.states
    ]
    fields.append(StateField(MASS, (1, heads), float32))
    fields += [
        StateField(prompt_mass_name(window), (1, heads), float32)
        for window in prompt_windows(graph)
    ]
    for index, branch in enumerate(graph.output.branches):
        if branch.selection is not None:
            shape = branch.selection.type.shape
            fields.append(StateField(selection_name(index), shape, boolean))
    return tuple(fields)


class PoolStore:
    """Arrays ``[kv_heads, blocks of the pool, r, c]`` by layer and name, in stored types.

    Beside the fields there is, for state variables whose start is not a constant, the value that
    a block's state starts with: a pure function of the block, shared with it. Keys and values that
    have `PageCodes` lie here as they were staged; readers of a complete block turn them into what
    its codes hold. So the codes of a block depend on its tokens alone, and rewinding into a block
    that was complete finds its staged tokens.
    """

    def __init__(
        self,
        graph: Graph,
        paging: PagingSpec,
        namespace: Namespace,
        sizes: tuple[int, int],
    ) -> None:
        """``sizes`` are the numbers of layers and of KV heads."""
        self._paging = paging
        self._namespace = namespace
        kept = pooled(graph).values()
        self._initial = {item.name: item.initial for item in kept}
        self.codes = page_codes_of(graph.geometry)
        """How complete blocks of a field are kept, if not as ``dtypes`` says."""
        self.dtypes = {
            item.name: STAGED_DTYPE if item.name in self.codes else item.type.dtype for item in kept
        }
        num_layers, *leading = *sizes, paging.num_blocks
        self._layers: list[dict[str, Array]] = [
            {
                item.name: namespace.full(
                    (*leading, *item.type.shape), item.initial, self.dtypes[item.name]
                )
                for item in kept
            }
            for _ in range(num_layers)
        ]
        self._reserved = tuple(graph.geometry.reserved_fields)

    def pool(self, layer: int, name: str) -> Array:
        return self._layers[layer][name]

    def field(self, layer: int, name: str, blocks: Array, tail: Array | None = None) -> PagedField:
        """Complete blocks of a field or a state variable, and an unfinished one behind them."""
        pool, codes = self.pool(layer, name), self.codes.get(name)
        return PagedField(self._namespace, pool, self.dtypes[name], blocks, tail, codes)

    def make_ready(self, plan: ExtendPlan) -> None:
        """Fresh pages start at initial values; copies bring tokens and what is known of them."""
        fresh = self._blocks_of(plan.fresh_pages)
        for layer in self._layers:
            for name, pool in layer.items():
                if name not in self._reserved and plan.fresh_pages:
                    pool[:, fresh] = self._initial[name]
                for copy in plan.copies:
                    source, target = (
                        self._blocks_of((page,)) for page in (copy.source, copy.target)
                    )
                    pool[:, target] = pool[:, source]

    def write_tokens(self, layer: int, name: str, plan: ExtendPlan, values: Array) -> None:
        """Values [tokens, heads, width] at the places of the plan, rounded once."""
        xp = self._namespace.xp
        stored = self._namespace.stored(values, self.dtypes[name])
        blocks, offsets = (xp.asarray(part) for part in (plan.blocks, plan.offsets))
        self._layers[layer][name][:, blocks, offsets] = xp.permute_dims(stored, (1, 0, 2))

    def write_blocks(self, layer: int, name: str, blocks: Array, values: Array) -> None:
        """Values [heads or 1, blocks, r, c] of whole blocks, rounded once."""
        pool = self._layers[layer][name]
        shape = (pool.shape[0], blocks.shape[0], *pool.shape[2:])
        stored = self._namespace.stored(values, self.dtypes[name])
        pool[:, blocks] = self._namespace.xp.broadcast_to(stored, shape)

    def block_bytes(self, names: Iterable[str], *, is_staged: bool = False) -> int:
        """Return the stored bytes of one block of one head; a staged one is not complete."""
        total = 0
        for name in names:
            rows, columns = map(int, self._layers[0][name].shape[2:])
            codes = None if is_staged else self.codes.get(name)
            if codes is not None:
                total += codes.page_bytes(rows, columns)
            else:
                total += -(-rows * columns * self.dtypes[name].bits // 8)
        return total

    def row_bytes(self, names: Iterable[str], num_tokens: int) -> int:
        """Return the stored bytes of a row of so many tokens of one head."""
        wanted = tuple(names)
        complete, rest = divmod(num_tokens, self._paging.block_size)
        partial = self.block_bytes(wanted, is_staged=True) if rest else 0
        return complete * self.block_bytes(wanted) + partial

    def snapshot(self) -> tuple[Mapping[str, Array], ...]:
        return self._copied(self._layers)

    def restore(self, snapshot: tuple[Mapping[str, Array], ...]) -> None:
        self._layers = [*self._copied(snapshot)]

    def _copied(self, layers: Iterable[Mapping[str, Array]]) -> tuple[dict[str, Array], ...]:
        xp = self._namespace.xp
        return tuple(
            {name: xp.asarray(pool, copy=True) for name, pool in layer.items()} for layer in layers
        )

    def _blocks_of(self, pages: tuple[int, ...]) -> Array:
        per_page = self._paging.blocks_per_page
        first = np.array(pages, dtype=np.int64)[:, None] * per_page
        return self._namespace.xp.asarray((first + np.arange(per_page)).reshape(-1))
