"""Arrays of NumPy or torch, behind the array API. Torch is never imported here."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeAlias, TypeVar

import array_api_compat

Array: TypeAlias = Any  # of the namespace at hand; the array API has no common static type
Tree = TypeVar("Tree")


def namespace_of(array: Array) -> Any:
    """The functions of the library that an array belongs to."""
    return array_api_compat.array_namespace(array)


def map_arrays(tree: Tree, function: Callable[[Array], Array]) -> Tree:
    """A copy of weights with ``function`` applied to every array in them.

    ``map_arrays(weights, torch.from_numpy)`` moves a model to torch.
    """
    found: Tree = _mapped(tree, function)
    return found


def _mapped(value: Any, function: Callable[[Array], Array]) -> Any:
    if array_api_compat.is_array_api_obj(value):
        return function(value)
    if isinstance(value, tuple):
        return tuple(_mapped(item, function) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value)]
        return replace(value, **{name: _mapped(getattr(value, name), function) for name in names})
    return value
