"""Every kind of engine as a test parameter; the one table of skips with their reasons."""

import os

import pytest

from tilewright.engine import EngineKind, native_built

__all__ = ("ENGINES", "every_engine", "needs_both_engines")

# Where the compiled core is required, its absence is no reason to skip: building it then fails.
_skips_native = pytest.mark.skipif(
    not native_built() and os.environ.get("TILEWRIGHT_REQUIRE_CORE") != "1",
    reason="the compiled core is not built; reinstall with a C++ compiler",
)

ENGINES = [
    pytest.param(EngineKind.REFERENCE, id="reference"),
    pytest.param(EngineKind.NATIVE, id="native", marks=_skips_native),
]

every_engine = pytest.mark.parametrize("kind", ENGINES)
needs_both_engines = _skips_native
