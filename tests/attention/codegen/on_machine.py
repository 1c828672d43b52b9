"""One row of a compiled flow on PEs of one cube: arrays lie with PE 0, members run side by side."""

import math
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import tilewright.language as tl
from tilewright.attention.codegen import Deal, Grid, KernelFile, Merge, Scratch, ScratchAxis
from tilewright.attention.codegen.kernels.merge import tree_neighbours
from tilewright.attention.graph import Geometry
from tilewright.host import DPPolicy, PeCoord, RuntimeContext
from tilewright.machine import Machine, build_machine, parse_machine

Array = npt.NDArray[Any]
ONE_PE = DPPolicy(num_sips=1, num_cubes=1, num_pes=1)
KINDS = {"float32": "f32", "float16": "f16", "int32": "i32", "int8": "i8"}


@cache
def small_machine() -> Machine:
    """Four PEs a cube."""
    return build_machine(parse_machine("ahbm-small"))


def draw_row(sizes: Geometry, tokens: int, seed: int, *, ties: bool) -> dict[str, Array]:
    """Pools of one row by logical page, with the summaries of Quest, and a query."""
    rng = np.random.default_rng(seed)
    pages = -(-tokens // sizes.page_size)
    high = 1 if ties else 8

    def drawn(*shape: int) -> Array:
        return (rng.integers(-high, high + 1, shape) / 4).astype(np.float16)

    keys = drawn(1, pages, sizes.page_size, sizes.key_dim)
    if ties:
        keys = np.repeat(keys[:, ::5], 5, axis=1)[:, :pages]
    return {
        "k_pool": keys,
        "v_pool": drawn(1, pages, sizes.page_size, sizes.value_dim),
        "q_in": drawn(1, 1, sizes.query_heads, sizes.key_dim),
        "max_pool": keys.max(2, keepdims=True),
        "min_pool": keys.min(2, keepdims=True),
    }


class RowResult(NamedTuple):
    """What a row gave, which logical pages it read, and what it loaded and stored in all."""

    output: Array
    pages: list[int]
    num_bytes: int


def run_row(
    machine: Machine, file: KernelFile, values: dict[str, Array], tokens: int, budget: int
) -> RowResult:
    if file.target is None:
        raise ValueError("a file for whole rows")
    members, own = file.target.members, file.target.pages
    row = _Row(file.target.deal, members, own, tokens, file.geometry)
    with RuntimeContext(machine) as torch:
        given: dict[str, Any] = row.numbers()
        for name, array in {**values, **row.arrays(budget)}.items():
            given[name] = torch.empty(array.shape, KINDS[str(array.dtype)], dp=ONE_PE, name=name)
            given[name].copy_(array, timed=False)
        for item in (*file.scratch, *file.results):
            shape = (*row.extents(item), *item.shape)
            given[item.name] = torch.zeros(shape, KINDS[item.dtype], dp=ONE_PE, timed=False)
            given[f"{item.name}_row"] = math.prod(shape[1:])
            given[f"{item.name}_member"] = math.prod(shape[2:])
        _launch(torch, file, given)
        found = list(range(row.num_pages))
        if "page_list" in given:
            arrays = (given[name].numpy(timed=False) for name in ("page_list", "list_length"))
            lists, lengths = arrays
            found = row.pages(lists.reshape(members, -1), lengths.reshape(-1))
        counters = [report.counters for report in torch.reports]
        moved = sum(item.loaded_bytes + item.stored_bytes for item in counters)
        return RowResult(given["output"].numpy(timed=False), found, moved)


class _Row:
    """Which page lies where."""

    def __init__(self, deal: Deal, members: int, own: int, tokens: int, sizes: Geometry) -> None:
        self.deal, self.members, self.own = deal, members, own
        self.tokens, self.sizes = tokens, sizes
        self.num_pages = -(-tokens // sizes.page_size)

    def logical(self, member: int, own: int) -> int:
        return own * self.members + member if self.deal is Deal.DEALT else member * self.own + own

    def numbers(self) -> dict[str, Any]:
        return {
            "num_kv_heads": 1,
            "num_blocks": self.num_pages,
            "table_request": self.members * self.own,
            "table_head": 0,
            "table_member": self.own,
            "member_pages": self.own,
            "first_reserved": 1,
            "last_reserved": 1,
            "scale": 1 / math.sqrt(self.sizes.key_dim),
            "q_in_row": self.sizes.query_heads * self.sizes.key_dim,
        }

    def arrays(self, budget: int) -> dict[str, Array]:
        places = np.array(
            [[self.logical(m, own) for own in range(self.own)] for m in range(self.members)]
        )
        return {
            "num_tokens_ptr": np.array([self.tokens], np.int32),
            "block_table": np.where(places < self.num_pages, places, 0).astype(np.int32),
            "at_least": np.array([budget], np.int32),
            "at_most": np.array([budget], np.int32),
            "threshold": np.array([-np.inf], np.float32),
            "reads_all": np.zeros(1, np.int8),
        }

    def extents(self, item: Scratch) -> tuple[int, ...]:
        return {
            ScratchAxis.ROWS: (1,),
            ScratchAxis.PAGES: (1, self.members * self.own),
            ScratchAxis.MEMBER_PAGES: (1, self.members, self.own),
            ScratchAxis.PARTS: (1, self.members),
        }[item.axis]

    def pages(self, lists: Array, lengths: Array) -> list[int]:
        return sorted(
            self.logical(member, int(own))
            for member in range(self.members)
            for own in lists[member, : lengths[member]]
        )


def _launch(torch: RuntimeContext, file: KernelFile, given: dict[str, Any]) -> None:
    jit = SimpleNamespace(jit=lambda kernel: kernel)
    functions: dict[str, Any] = {"triton": jit, "tl": tl, "__name__": "kernels"}
    text = file.text.replace("import triton.language as tl\n", "").replace("import triton\n", "")
    exec(compile(text, "<kernels>", "exec"), functions)
    members = file.target.members if file.target else 1
    for kernel in file.step:
        options: dict[str, Any] = {"grid": (1,), "on": lambda *_: PeCoord(0, 0, 0)}
        if kernel.grid is Grid.ROW_COLUMNS:
            options["grid"] = (1, kernel.tile)
        if kernel.grid is Grid.ROW_MEMBERS:
            options = {"grid": (1, members), "on": lambda _, member: PeCoord(0, 0, member)}
            if file.merge is Merge.IPCQ:
                options["neighbours"] = {
                    (0, member): {way: (0, peer) for way, peer in ways.items()}
                    for member, ways in tree_neighbours(members).items()
                }
        arguments = {name: given[name] for name in kernel.arguments}
        torch.launch(functions[kernel.name], **options, **arguments)
