"""Every name that a kernel may ask of ``tl``; the guide quotes it. Any other name is refused."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tilewright.interop.kernbench.language import compute, memory, message, place, tile

_ELEMENTS = """
    abs ceil clamp cos erf exp exp2 floor fma log log2 maximum minimum rsqrt sigmoid sin sqrt tanh
    where
"""
_FAMILIES: Mapping[str, tuple[Any, str]] = {
    "place": (place, "program_id num_programs"),
    "memory": (memory, "load ref store"),
    "product": (compute, "dot"),
    "composite": (tile, "composite wait"),
    "elements": (compute, _ELEMENTS),
    "axes": (compute, "max min softmax sum"),
    "shape": (compute, "broadcast_to reshape trans"),
    "values": (compute, "arange cast cdiv full zeros"),
    "messages": (message, "send recv recv_async recv_no_consume"),
}

KERNEL_NAMES: Mapping[str, Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {
        family: MappingProxyType({name: getattr(module, name) for name in names.split()})
        for family, (module, names) in _FAMILIES.items()
    }
)
"""Functions by family and name. Their first line says what each does."""
