"""The table of keys against the machine's schema and against the guide."""

import re
from pathlib import Path

import pytest

from tilewright.interop.kernbench.topology.document import KeyPath
from tilewright.interop.kernbench.topology.keys import (
    KEYS,
    LINKS,
    SECTIONS,
    Refused,
    Sets,
    key_text,
)
from tilewright.machine.file.schema import is_path

GUIDE = Path(__file__).parents[4] / "docs" / "guides" / "import-a-topology.md"
COMPONENT = re.compile(r"(.*components\.\w+)\.(kind|impl|pos_mm)")


def test_every_field_that_a_key_sets_is_one_of_a_machine() -> None:
    fields = {fate.field for fate in KEYS.values() if isinstance(fate, Sets)}
    assert [name for name in fields if not is_path(name)] == []


def test_no_key_is_a_section_too() -> None:
    assert set(KEYS).isdisjoint(SECTIONS)


def shown_in_guide() -> set[str]:
    return set(re.findall(r"`([^`\n]+)`", GUIDE.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", [path for path in KEYS if "links" not in path[:-1]], ids=key_text)
def test_every_key_stands_in_the_guide(path: KeyPath) -> None:
    component = COMPONENT.fullmatch(key_text(path))
    is_moved = getattr(KEYS[path], "is_pair", False)
    name = component[2] if component and not is_moved else key_text(path)
    assert name in shown_in_guide()


@pytest.mark.parametrize("kind", LINKS)
def test_every_kind_of_link_stands_in_the_guide(kind: str) -> None:
    assert kind in shown_in_guide()


def test_a_field_stands_in_the_guide_beside_each_key_that_sets_it() -> None:
    rows = [line for line in GUIDE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    for path, fate in KEYS.items():
        if "links" in path[:-1] or not isinstance(fate, Sets):
            continue
        assert any(f"`{key_text(path)}`" in row and f"`{fate.field}`" in row for row in rows), path


def test_a_refused_key_says_what_to_do() -> None:
    assert all(len(fate.fix) > 20 for fate in KEYS.values() if isinstance(fate, Refused))
