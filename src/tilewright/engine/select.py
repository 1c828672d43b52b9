"""Chooses the engine: the compiled core, or its definition in Python."""

from typing import cast

from tilewright.engine.core import Core
from tilewright.engine.engine import Engine
from tilewright.engine.kind import AUTO, Auto, EngineKind
from tilewright.engine.reference import ReferenceCore
from tilewright.engine.spec import EngineSpec
from tilewright.errors import EngineError
from tilewright.native import native_built, native_core


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
    make = ReferenceCore if kind is EngineKind.REFERENCE else native_core().Core
    core = make(spec.flit_bytes, spec.packet_flits, spec.arrival_salt)
    # a cast, since a core takes only graphs that it compiled itself
    return Engine(cast("Core", core), kind, spec)
