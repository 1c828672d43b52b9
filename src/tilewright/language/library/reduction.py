"""Blocks made smaller or run through: reductions, scans, order, counts."""

from collections.abc import Callable
from typing import Any

from tilewright.language.executor import carry_out, current_program
from tilewright.language.front import planned


@planned
def sum(input: Any, axis: int | None = None, keep_dims: bool = False, dtype: Any = None) -> Any:
    """The sum over an axis, or over all elements."""
    wanted = None if dtype is None else current_program().dtype(dtype)
    return carry_out("sum", (input,), axis, keep_dims, wanted)


def _extreme(op: str, which: str) -> Callable[..., Any]:
    def function(
        input: Any,
        axis: int | None = None,
        return_indices: bool = False,
        return_indices_tie_break_left: bool = True,
        keep_dims: bool = False,
    ) -> Any:
        return carry_out(op, (input,), axis, keep_dims, return_indices)

    function.__name__ = function.__qualname__ = op
    says = f"The {which} element over an axis, with its index if asked for"
    function.__doc__ = f"{says}; the first one of equals."
    return planned(function)


max = _extreme("max", "greatest")
min = _extreme("min", "least")


@planned
def argmax(input: Any, axis: int, tie_break_left: bool = True, keep_dims: bool = False) -> Any:
    """Where the greatest element is; the first one of equals."""
    return carry_out("argmax", (input,), axis, keep_dims)


@planned
def argmin(input: Any, axis: int, tie_break_left: bool = True, keep_dims: bool = False) -> Any:
    """Where the least element is; the first one of equals."""
    return carry_out("argmin", (input,), axis, keep_dims)


@planned
def xor_sum(input: Any, axis: int | None = None, keep_dims: bool = False) -> Any:
    """Exclusive or over an axis."""
    return carry_out("xor_sum", (input,), axis, keep_dims)


@planned
def reduce_or(input: Any, axis: int | None = None, keep_dims: bool = False) -> Any:
    """Or over an axis."""
    return carry_out("reduce_or", (input,), axis, keep_dims)


def reduce(
    input: Any, axis: int | None, combine_fn: Callable[..., Any], keep_dims: bool = False
) -> Any:
    """Over an axis with a function of the kernel's own, which is associative."""
    return _combined("reduce", input, combine_fn, axis, keep_dims)


def associative_scan(
    input: Any, axis: int, combine_fn: Callable[..., Any], reverse: bool = False
) -> Any:
    """Every prefix of an axis, combined by a function of the kernel's own."""
    return _combined("associative_scan", input, combine_fn, axis, reverse)


def _combined(op: str, input: Any, combine_fn: Callable[..., Any], *attributes: Any) -> Any:
    inputs = input if isinstance(input, list | tuple) else (input,)
    combine = current_program().array_function(combine_fn)
    found = carry_out(op, inputs, *attributes, combine)
    return found if isinstance(input, list | tuple) is isinstance(found, tuple) else (found,)


@planned
def cumsum(input: Any, axis: int = 0, reverse: bool = False, dtype: Any = None) -> Any:
    """Sums of all prefixes of an axis."""
    wanted = None if dtype is None else current_program().dtype(dtype)
    return carry_out("cumsum", (input,), axis, reverse, wanted)


@planned
def cumprod(input: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Products of all prefixes of an axis."""
    return carry_out("cumprod", (input,), axis, reverse, None)


@planned
def softmax(
    x: Any, dim: int | None = None, keep_dims: bool = False, ieee_rounding: bool = False
) -> Any:
    """exp(x - max) over its sum, along an axis."""
    return carry_out("softmax", (x,), 0 if dim is None else dim)


@planned
def sort(x: Any, dim: int | None = None, descending: bool = False) -> Any:
    """Elements of the last axis in order."""
    return carry_out("sort", (x,), -1 if dim is None else dim, descending)


@planned
def bitonic_merge(x: Any, dim: int | None = None, descending: bool = False) -> Any:
    """The last axis in order, if it rises and then falls."""
    return carry_out("bitonic_merge", (x,), -1 if dim is None else dim, descending)


@planned
def topk(x: Any, k: int, dim: int | None = None, descending: bool = True) -> Any:
    """The k greatest elements of the last axis, in order."""
    return carry_out("topk", (x,), k, -1 if dim is None else dim, descending)


@planned
def histogram(input: Any, num_bins: int, mask: Any = None) -> Any:
    """How often each of 0, 1, ... num_bins - 1 occurs."""
    return carry_out("histogram", (input,) if mask is None else (input, mask), num_bins)


@planned
def gather(src: Any, index: Any, axis: int) -> Any:
    """Elements of ``src`` at the places that ``index`` names on an axis."""
    return carry_out("gather", (src, index), axis)
