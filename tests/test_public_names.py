import importlib
import pkgutil
from pathlib import Path

import pytest

import tilewright

PINNED = Path(__file__).parent / "golden" / "test_public_names"


def rooms() -> list[str]:
    """Every package, and the modules that stand beside them at the top."""
    walk = pkgutil.walk_packages(tilewright.__path__, "tilewright.")
    names = [info.name for info in walk if info.ispkg or info.name.count(".") == 1]
    return ["tilewright", *names]


def pinned_names(room: str) -> list[str]:
    """One name a line; a room without a file has no public names of its own."""
    file = PINNED / f"{room}.txt"
    return file.read_text(encoding="utf-8").split() if file.exists() else []


@pytest.mark.parametrize("room", rooms())
def test_the_public_names_of_a_room_are_the_pinned_ones(
    room: str, request: pytest.FixtureRequest
) -> None:
    module = importlib.import_module(room)
    found = list(getattr(module, "__all__", ()))
    if request.config.getoption("update_golden"):
        PINNED.mkdir(exist_ok=True)
        (PINNED / f"{room}.txt").unlink(missing_ok=True)
        if found:
            text = "".join(f"{name}\n" for name in found)
            (PINNED / f"{room}.txt").write_text(text, encoding="utf-8")
    assert found == pinned_names(room)
    assert len(set(found)) == len(found)
    assert all(hasattr(module, name) for name in found)


def test_every_pinned_room_exists() -> None:
    assert {file.stem for file in PINNED.iterdir()} <= set(rooms())


@pytest.mark.parametrize("room", rooms())
def test_every_room_says_what_it_holds(room: str) -> None:
    assert importlib.import_module(room).__doc__
