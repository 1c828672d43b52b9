"""Every engine, one at a time; without the compiled core the native one is skipped."""

from collections.abc import Callable

import pytest

from tests.kinds import ENGINES
from tilewright.engine import Engine, EngineKind, EngineSpec, build_engine


@pytest.fixture(params=ENGINES)
def kind(request: pytest.FixtureRequest) -> EngineKind:
    chosen: EngineKind = request.param
    return chosen


@pytest.fixture
def make_engine(kind: EngineKind) -> Callable[..., Engine]:
    def make(**fields: int) -> Engine:
        return build_engine(kind, EngineSpec(**fields))

    return make


@pytest.fixture
def engine(kind: EngineKind) -> Engine:
    return build_engine(kind)
