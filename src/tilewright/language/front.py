"""Chooses who holds values and computes them: compiled code, or its definition in Python.

This is the only place that knows. Both give the same results; without a compiler there is the
definition alone. Who issues commands is chosen in ``executor.run``.
"""

from collections.abc import Callable
from functools import update_wrapper
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from greenlet import getcurrent

from tilewright.errors import TilewrightError
from tilewright.language.affine import Affine, Box
from tilewright.language.block_type import PointerType, block_type
from tilewright.language.dtype import float32, int1, int4, int32, int64
from tilewright.language.plain import explained
from tilewright.language.plain import not_captured as not_captured
from tilewright.language.source import ROOMS, add_place
from tilewright.native import native_core

_core = native_core()

Function = TypeVar("Function", bound=Callable[..., Any])

FUNCTION_TYPES: tuple[Any, ...] = (FunctionType,)
"""What functions are, those of the library among them."""

if _core is not None:
    FUNCTION_TYPES = (FunctionType, _core.PlannedCall)

if TYPE_CHECKING or _core is None:
    from tilewright.language.plain import BlockFields as BlockFields
    from tilewright.language.plain import IndexFields as IndexFields
    from tilewright.language.plain import MaskFields as MaskFields
    from tilewright.language.plain import Node as Node
    from tilewright.language.plain import PointersFields as PointersFields
    from tilewright.language.plain import evaluate as evaluate
    from tilewright.language.plain import is_determined as is_determined

    IntegerFields = int

else:
    IntegerFields = _core.IntegerFields
    Node, evaluate, is_determined = _core.Node, _core.evaluate, _core.is_determined
    BlockFields, IndexFields = _core.BlockFields, _core.IndexFields
    MaskFields, PointersFields = _core.MaskFields, _core.PointersFields


def constant_node(value: np.ndarray[Any, Any]) -> Node:
    """A value that is there."""
    node = Node(None, (), None)
    node.value = value
    return node


def spread(value: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    """A value that is stored as an array of the shape of its addresses."""
    array = np.asarray(value, dtype)
    return array if array.shape == shape else np.broadcast_to(array, shape)


_FUNCTIONS: tuple[Any, ...] = (add_place, block_type, explained, getcurrent, not_captured, spread)
_NUMPY: tuple[Any, ...] = (np.add, np.divide, np.empty, np.multiply, np.ndarray, np.subtract)


def adopt_values(*values: Any) -> None:
    """Tell compiled code of the classes it makes values of, and of the words that it needs."""
    if _core is None:
        return
    named = (*values, Affine, Box, PointerType, TilewrightError, *_FUNCTIONS, *_NUMPY)
    language: dict[str, Any] = {each.__name__: each for each in named}
    language |= {dtype.language_name: dtype for dtype in (float32, int1, int4, int32, int64)}
    _core.adopt_language(language | {"ROOMS": ROOMS})


def compiled_function(function: Function) -> Function:
    """The compiled function of that name if there is one, else its definition."""
    found: Function = function if _core is None else getattr(_core, function.__name__)
    return found


def planned(function: Function) -> Function:
    """A function of the library whose calls compiled code repeats without it, once it knows them.

    A call is known by the types of its blocks and the values of all else. The function lets no
    program wait, and decides by nothing but its arguments.
    """
    return _called_by_core(function, "")


def direct(function: Function) -> Function:
    """A function of the library whose plain calls compiled code does without it."""
    return _called_by_core(function, function.__name__)


def _called_by_core(function: Function, kind: str) -> Function:
    if _core is None:
        return function
    call: Any = update_wrapper(_core.PlannedCall(function, kind), function)
    repeated: Function = call
    return repeated
