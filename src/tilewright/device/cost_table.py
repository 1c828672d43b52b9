"""Which kind of work each op of the vector unit is. Times are in ``vector``, figures in the spec.

An op that is made of others (softmax, sigmoid, relu) has no line: its parts are charged.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from tilewright.device.lookup import look_up
from tilewright.errors import RegistryError


class CostClass(Enum):
    """What an op's time is made of."""

    SIMPLE = "simple"  # one pass over the elements, simple_cycles each time the lanes are full
    COMPLEX = "complex"  # the same with complex_cycles
    REDUCTION = "reduction"  # one pass, then a tree over the lanes
    SORT = "sort"  # the stages of a sorting network
    MOVE = "move"  # bytes through the ports of the TCM


_OPS: Mapping[CostClass, str] = {
    CostClass.SIMPLE: """
        abs add and arange cast ceil clamp eq floor fma full ge gt le lt maximum minimum mul ne neg
        not or select shl shr sub where xor
    """,
    CostClass.COMPLEX: "cos div erf exp exp2 floordiv log log2 mod rsqrt sin sqrt tanh",
    # a scan keeps what a reduction's tree computes on its way: same passes, same depth
    CostClass.REDUCTION: "all any argmax argmin cumprod cumsum max min prod scan sum xor_sum",
    CostClass.SORT: "argsort sort topk",
    # a reshape that moves no data is no command at all
    CostClass.MOVE: "cat flip gather interleave permute reshape split trans",
}


def build_cost_table(ops: Mapping[CostClass, str]) -> Mapping[str, CostClass]:
    """From classes with their ops to ops with their class; an op has one class."""
    table: dict[str, CostClass] = {}
    for cost, names in ops.items():
        for op in names.split():
            if op in table:
                found = f"op {op!r} in the classes {table[op].value} and {cost.value}"
                raise RegistryError("cost table", found, "one class an op", "take one of them out")
            table[op] = cost
    return MappingProxyType(table)


COST_TABLE: Mapping[str, CostClass] = build_cost_table(_OPS)


def cost_class_of(where: str, op: str) -> CostClass:
    """The class of ``op``; an unknown one is refused with the names that come near.

    >>> cost_class_of("sip0.cube0.pe0.vector", "rsqrt").value
    'complex'
    """
    return look_up(where, "op", op, COST_TABLE)
