"""How every op is evaluated, keyed by its class."""

from collections.abc import Mapping
from types import MappingProxyType

from tilewright.attention.backends.reference.elementwise import ELEMENTWISE
from tilewright.attention.backends.reference.evaluator import Evaluator, EvaluatorTable
from tilewright.attention.backends.reference.layout import LAYOUT
from tilewright.attention.backends.reference.linear import LINEAR
from tilewright.attention.backends.reference.page_axis import PAGE_AXIS
from tilewright.attention.backends.reference.position import POSITIONS
from tilewright.attention.backends.reference.reduction import REDUCTIONS
from tilewright.attention.backends.reference.selection import SELECTIONS
from tilewright.attention.graph import Op
from tilewright.errors import RegistryError


def build_evaluators(*tables: EvaluatorTable) -> Mapping[type[Op], Evaluator]:
    found: EvaluatorTable = {}
    for table in tables:
        for op, evaluator in table.items():
            if op in found:
                raise RegistryError("evaluators", f"two for {op.__name__}", "one", "remove one")
            found[op] = evaluator
    return MappingProxyType(found)


EVALUATORS = build_evaluators(
    ELEMENTWISE, LAYOUT, LINEAR, PAGE_AXIS, POSITIONS, REDUCTIONS, SELECTIONS
)
"""Every op but the sources, which a program reads from the session."""
