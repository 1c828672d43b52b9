"""The memory that copies of learned tables take in this process."""

from math import prod

from tilewright.attention.backends.machine.layout import RowLayout
from tilewright.attention.graph import Graph
from tilewright.errors import AttentionError
from tilewright.units import format_bytes

MAX_COPY_BYTES = 768 * 2**20  # a program that reads a table has it about twice more on its way


def check_table_copies(graph: Graph, layout: RowLayout) -> None:
    """Refuse a step with values whose tables would not fit: every PE that has pages has a copy."""
    num_bytes = sum(prod(item.type.shape) * item.type.dtype.bits // 8 for item in graph.parameters)
    num_pes = len(layout.used_pes)
    if num_bytes * num_pes > MAX_COPY_BYTES:
        found = f"tables of {format_bytes(num_bytes)}, a copy for each of {num_pes} PEs"
        expected = f"at most {format_bytes(MAX_COPY_BYTES)} of copies where values are computed"
        fix = "leave values out with --no-data, or put rows on fewer PEs with --placement head"
        raise AttentionError(f"parameters of flow {graph.name!r}", found, expected, fix)
