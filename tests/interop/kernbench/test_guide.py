"""The guide for KernBench's users has every module path and name that their programs may import."""

import re
from pathlib import Path

import pytest

from tilewright.errors import TilewrightError
from tilewright.interop.kernbench.names import PeCommand, ProgramRegistry, build_names

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "from-kernbench.md"
ROW = re.compile(r"^\| `(kernbench\.[\w.]+)` \|(.*)\|(.*)\|$", re.MULTILINE)
TABLE = build_names(ProgramRegistry()).table


def names_in(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


ROWS = {path: (names_in(given), names_in(refused))
        for path, given, refused in ROW.findall(GUIDE.read_text())}  # fmt: skip


def test_the_guide_has_each_module_path_with_its_names_once() -> None:
    shown = {path: sorted(given + refused) for path, (given, refused) in ROWS.items()}
    assert shown == {path: sorted(names) for path, names in TABLE.items() if names}


def test_what_the_guide_calls_refused_says_so_when_it_is_used() -> None:
    for path, (_, refused) in ROWS.items():
        for name in refused:
            value = TABLE[path][name]
            assert callable(value)
            with pytest.raises(TilewrightError, match=name):
                value()


def test_the_guide_calls_no_command_of_a_pe_usable() -> None:
    for path, (given, _) in ROWS.items():
        kinds = [
            value for value in (TABLE[path][name] for name in given) if isinstance(value, type)
        ]
        assert not any(issubclass(kind, PeCommand) for kind in kinds)
