"""Chooses the engine: the only place that knows if the compiled core is there."""

from importlib import import_module
from types import ModuleType
from typing import cast

from tilewright.engine.core import Core
from tilewright.engine.engine import Engine
from tilewright.engine.kind import AUTO, Auto, EngineKind
from tilewright.engine.reference import ReferenceCore
from tilewright.engine.spec import EngineSpec
from tilewright.errors import EngineError

__all__ = ("build_engine", "native_built", "native_core", "resolve_engine")

_native: ModuleType | None
try:
    _native = import_module("tilewright.engine._core")
except ModuleNotFoundError:
    _native = None
except ImportError as error:
    raise EngineError(
        "engine",
        f"a compiled core that does not load ({error})",
        "one that was built for this Python",
        "reinstall tilewright",
    ) from error


def native_built() -> bool:
    """If this installation has the compiled core."""
    return _native is not None


def native_core() -> ModuleType | None:
    """The compiled core, for who has more in it than the engine; None if there is none."""
    return _native


def resolve_engine(choice: EngineKind | Auto, *, native_built: bool) -> EngineKind:
    """Settle an open choice; refuse what is not there.

    >>> resolve_engine(AUTO, native_built=False)
    <EngineKind.REFERENCE: 'reference'>
    """
    if isinstance(choice, Auto):
        return EngineKind.NATIVE if native_built else EngineKind.REFERENCE
    if not isinstance(choice, EngineKind):
        expected = "AUTO, EngineKind.REFERENCE or EngineKind.NATIVE"
        fix = "import EngineKind from tilewright.engine"
        raise EngineError("engine", f"the choice {choice!r}", expected, fix)
    if choice is EngineKind.NATIVE and not native_built:
        fix = "reinstall with a C++ compiler, or choose reference"
        raise EngineError("engine", "no compiled core", "the native engine", fix)
    return choice


def build_engine(
    choice: EngineKind | Auto = AUTO,
    spec: EngineSpec = EngineSpec(),  # noqa: B008  # frozen
) -> Engine:
    """An engine without servers; ``engine.kind`` says which one it is."""
    kind = resolve_engine(choice, native_built=native_built())
    if not isinstance(spec, EngineSpec):
        raise EngineError("engine", f"the spec {spec!r}", "an EngineSpec", "build one")
    make = ReferenceCore if kind is EngineKind.REFERENCE else cast("ModuleType", _native).Core
    core = make(spec.flit_bytes, spec.packet_flits, spec.arrival_salt)
    # a cast, since a core takes only graphs that it compiled itself
    return Engine(cast("Core", core), kind, spec)
