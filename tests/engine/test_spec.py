import pytest

from tilewright.engine import (
    AUTO,
    EngineKind,
    EngineSpec,
    build_engine,
    native_built,
    resolve_engine,
)
from tilewright.errors import EngineError


def test_an_open_choice_takes_the_compiled_core_if_it_is_there() -> None:
    assert resolve_engine(AUTO, native_built=True) is EngineKind.NATIVE
    assert resolve_engine(AUTO, native_built=False) is EngineKind.REFERENCE


def test_the_reference_can_always_be_chosen() -> None:
    assert resolve_engine(EngineKind.REFERENCE, native_built=True) is EngineKind.REFERENCE


def test_the_native_engine_is_never_replaced_in_silence() -> None:
    with pytest.raises(EngineError) as caught:
        resolve_engine(EngineKind.NATIVE, native_built=False)
    assert str(caught.value) == (
        "engine: found no compiled core, expected the native engine; "
        "reinstall with a C++ compiler, or choose reference"
    )


def test_an_engine_knows_its_kind_and_its_specification(kind: EngineKind) -> None:
    spec = EngineSpec(flit_bytes=32, packet_flits=4)
    engine = build_engine(kind, spec)
    assert (engine.kind, engine.spec, engine.now_ps) == (kind, spec, 0)


def test_a_choice_left_open_is_settled_when_the_engine_is_built() -> None:
    expected = EngineKind.NATIVE if native_built() else EngineKind.REFERENCE
    assert build_engine().kind is expected
