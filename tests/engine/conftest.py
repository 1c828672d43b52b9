"""Every engine, one at a time; without the compiled core the native one is skipped."""

import os
from collections.abc import Callable

import pytest

from tilewright.engine import Engine, EngineKind, EngineSpec, build_engine, native_built


@pytest.fixture(params=list(EngineKind), ids=lambda kind: kind.value)
def kind(request: pytest.FixtureRequest) -> EngineKind:
    chosen: EngineKind = request.param
    if chosen is EngineKind.NATIVE and not native_built():
        if os.environ.get("TILEWRIGHT_REQUIRE_CORE") == "1":
            pytest.fail("TILEWRIGHT_REQUIRE_CORE=1, but this installation has no compiled core")
        pytest.skip("this installation has no compiled core")
    return chosen


@pytest.fixture
def make_engine(kind: EngineKind) -> Callable[..., Engine]:
    def make(**fields: int) -> Engine:
        return build_engine(kind, EngineSpec(**fields))

    return make


@pytest.fixture
def engine(kind: EngineKind) -> Engine:
    return build_engine(kind)
