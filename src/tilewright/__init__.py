"""Tilewright: a workbench for LLM kernels on multi-chiplet accelerators.

Names are loaded when they are first used: `import tilewright` alone takes no time.
"""

from pkgutil import resolve_name
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright import attention
    from tilewright.host import DPPolicy, Interleave, LocalShard, LocalSize, RuntimeContext, Split
    from tilewright.machine import load_machine
    from tilewright.studies.run.command import run

    __version__: str

__all__ = (
    "DPPolicy",
    "Interleave",
    "LocalShard",
    "LocalSize",
    "RuntimeContext",
    "Split",
    "__version__",
    "attention",
    "load_machine",
    "run",
)

_OF_HOST = ("DPPolicy", "Interleave", "LocalShard", "LocalSize", "RuntimeContext", "Split")
_PLACES = MappingProxyType(
    {name: f"tilewright.host:{name}" for name in _OF_HOST}
    | {
        "attention": "tilewright.attention",
        "load_machine": "tilewright.machine:load_machine",
        "run": "tilewright.studies.run.command:run",
    }
)

if not TYPE_CHECKING:  # a type checker has the names above, and refuses all others

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            value = resolve_name("importlib.metadata:version")("tilewright")
        elif name in _PLACES:
            value = resolve_name(_PLACES[name])
        else:
            raise AttributeError(
                f"module {__name__!r} has no attribute {name!r}", name=name, obj=None
            )
        globals()[name] = value  # found at once from now on
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
