"""TLContext: what a kernel calls ``tl``."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from tilewright.errors import ProgramError
from tilewright.interop.kernbench.language import compute, memory, message
from tilewright.language.executor import current_program

_ELEMENTS = """
    abs ceil clamp cos erf exp exp2 floor fma log log2 maximum minimum rsqrt sigmoid sin sqrt tanh
    where
"""
_FAMILIES: Mapping[str, tuple[Any, str]] = {
    "place": (message, "program_id num_programs"),
    "memory": (memory, "load ref store"),
    "product": (compute, "dot"),
    "composite": (memory, "composite wait"),
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


class TLContext:
    """The class of ``tl``. One that is made by hand has no program, and refuses every call."""

    def __init__(
        self,
        pe_id: int = 0,
        num_programs: int = 1,
        dispatch_cycles: int = 1,
        runner: Any = None,
        cube_id: int = 0,
        num_cubes: int = 1,
        scratch_base: int = 0,
        scratch_size: int = 1 << 20,
    ) -> None:
        """Take what KernBench takes; nothing of it means anything here."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = f"tl.{name} of a TLContext that was made by hand"
        fix = "launch the kernel: the launch passes tl to it"
        raise ProgramError("TLContext", found, "the tl of a running program", fix)


class LaunchedLanguage(TLContext):
    """The ``tl`` that a launch passes: it speaks for whichever program runs."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        names = [each for family in KERNEL_NAMES.values() for each in family]
        near = get_close_matches(name, names, n=3)
        fix = f"did you mean {', '.join(near)}?" if near else "write it with names of the table"
        raise current_program().error(f"tl.{name}", "a name of the kernel language", fix)

    def __repr__(self) -> str:
        return "<TLContext of a launch>"


for _family in KERNEL_NAMES.values():
    for _name, _function in _family.items():
        setattr(LaunchedLanguage, _name, staticmethod(_function))
