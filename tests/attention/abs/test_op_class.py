"""Op objects of both sides from the table of ops: their names, their stubs, one op more."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tilewright.attention import cache, indexer
from tilewright.attention.abs import Value, vOp
from tilewright.attention.cache.ops import CacheOp

SIDES = pytest.mark.parametrize(
    ("side", "base"), [(cache, CacheOp), (indexer, vOp)], ids=["cache", "indexer"]
)

OF_PAIRS = ("TopK",)
"""Op objects of the table whose calls return more than a value."""


def stub_of(side: ModuleType, base: type[vOp]) -> str:
    """The names of a side for type checkers and editors, a line each."""
    found = {name: getattr(side, name) for name in side.__all__}
    made = [name for name, item in found.items() if item.__module__ == side.__name__]
    bases = dict.fromkeys(OF_PAIRS, base.__name__)
    imports = [(item.__module__, item.__name__) for item in (base, Value)]
    imports += [
        (item.__module__, f"{name} as {name}") for name, item in found.items() if name not in made
    ]
    return "\n".join(
        [
            f'"""Names of `{side.__name__}`, written by ``pytest --update-golden``."""\n',
            "from typing import Any\n",
            *(f"from {module} import {text}" for module, text in sorted(imports)),
            "",
            f"class _Op({base.__name__}):",
            "    def __call__(self, *args: Any, **kwargs: Any) -> Value: ...",
            "",
            *(f"class {name}({bases.get(name, '_Op')}): ..." for name in made),
            "",
        ]
    )


@SIDES
def test_the_stub_of_a_side_has_its_names(
    side: ModuleType, base: type[vOp], request: pytest.FixtureRequest
) -> None:
    file = Path(inspect.getfile(side)).with_suffix(".pyi")
    if request.config.getoption("update_golden"):
        file.write_text(stub_of(side, base), encoding="utf-8")
    assert file.read_text(encoding="utf-8") == stub_of(side, base)


@SIDES
def test_what_constructors_take_and_say_is_pinned(
    side: ModuleType, base: type[vOp], check_golden: Callable[[str], None]
) -> None:
    assert issubclass(side.Mean, base)
    ops = [item for name in side.__all__ if inspect.isclass(item := getattr(side, name))]
    texts = [f"{op.__name__}{inspect.signature(op)}\n{inspect.getdoc(op)}\n" for op in ops]
    check_golden(re.sub(r"tilewright\.[\w.]+\.", "", "\n".join(texts)))  # names without modules
