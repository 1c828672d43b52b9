"""What kernels keep of requests between steps, and the masses of a prompt."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.attention.codegen.memory_form import packed
from tilewright.attention.graph import DType, Graph, Side, ValueType
from tilewright.attention.ops.leaf import AttentionMass, PromptMass

Floats = npt.NDArray[np.float32]
UNKNOWN = 1  # in memory that nobody may read


def argument_of(name: str) -> str:
    return name.replace(".", "_")


def prompt_windows(graph: Graph) -> list[int]:
    ops = [node.op for node in graph.nodes(Side.INDEXER)]
    return sorted({op.window for op in ops if isinstance(op, PromptMass)})


class Kept:
    """Arguments of kernels: state as the last step left it, and memory for the next."""

    def __init__(self, graph: Graph, num_rows: int, max_pages: int) -> None:
        self.arguments: dict[str, Any] = {}
        self._names = []
        for state in graph.states:
            self._names.append(argument_of(state.name))
            memory = _memory(state.type, (num_rows, max_pages))
            self._add(argument_of(state.name), memory)
        masses = (num_rows, max_pages, graph.geometry.query_heads)
        if any(isinstance(node.op, AttentionMass) for node in graph.nodes(Side.INDEXER)):
            self._names.append("attention_mass")
            self._add("attention_mass", np.zeros(masses, dtype=np.float32))
        for window in prompt_windows(graph):
            mass = np.zeros(masses, dtype=np.float32)
            self.arguments[f"prompt_mass_{window}_state"] = mass
        if graph.states:
            self.arguments["kept_pages"] = np.zeros(num_rows, dtype=np.int32)
            self.arguments["saved_pages"] = np.zeros(num_rows, dtype=np.int32)

    def _add(self, name: str, memory: Any) -> None:
        self.arguments[f"{name}_state"] = memory
        self.arguments[f"{name}_next"] = memory.copy()

    def take(self, found: dict[str, Any], pages: list[int], advanced: Any) -> None:
        """What a step wrote is what the next one reads; ``advanced`` pages of rows by Saves."""
        for name in self._names:
            self.arguments[f"{name}_next"] = self.arguments[f"{name}_state"]
            self.arguments[f"{name}_state"] = found[f"{name}_next"]
        if "kept_pages" in self.arguments:
            self.arguments["kept_pages"] = np.array(pages, dtype=np.int32)
            saved = np.maximum(self.arguments["saved_pages"], advanced)
            self.arguments["saved_pages"] = saved.astype(np.int32)

    def observe(
        self, graph: Graph, windows: list[int], rows: Sequence[int], keys: Floats, queries: Floats
    ) -> None:
        for window in windows:
            memory = self.arguments[f"prompt_mass_{window}_state"]
            for head, row in enumerate(rows):
                mass = _prompt_mass(graph, keys[:, head], queries[-window:, head])
                memory[row, : len(mass)] = mass


def _memory(kind: ValueType, leading: tuple[int, int]) -> Any:
    dtypes = {DType.FLOAT32: np.float32, DType.FLOAT16: np.float16, DType.INT32: np.int32}
    full = np.full((*leading, *kind.shape), UNKNOWN, dtype=dtypes.get(kind.dtype, np.int8))
    return packed(full, kind)


def _prompt_mass(graph: Graph, keys: Floats, queries: Floats) -> Floats:
    """[pages, query heads]: the last queries of a prompt, each over the tokens up to itself."""
    size, (num_tokens, width) = graph.geometry.page_size, keys.shape
    mass = np.zeros((-(-num_tokens // size), queries.shape[1]))
    for index, query in enumerate(queries.astype(np.float64)):
        seen = num_tokens - len(queries) + index + 1
        logits = query @ keys[:seen].T.astype(np.float64) / np.sqrt(width)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares = weights / weights.sum(axis=1, keepdims=True)
        for page in range(-(-seen // size)):
            mass[page] += shares[:, page * size : (page + 1) * size].sum(axis=1)
    return mass.astype(np.float32)
