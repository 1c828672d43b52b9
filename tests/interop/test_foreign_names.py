"""Names of a foreign package: for a block only, never over a real one, with near matches."""

import importlib
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import RegistryError, UnknownAttributeError, UnknownImportError
from tilewright.interop import foreign_names
from tilewright.interop.foreign_names import ForeignNames, public_names


@pytest.fixture
def names() -> ForeignNames:
    deep = {"load": len, "_private": {}}
    return ForeignNames("strange", {"": {"answer": 42}, "api.deep": deep, "api.own": foreign_names})


def run(text: str, file: str = "program.py") -> dict[str, Any]:
    """Run the text of a program and return its globals."""
    found: dict[str, Any] = {}
    exec(compile(text, file, "exec"), found)
    return found


def modules_of(package: str) -> dict[str, ModuleType]:
    return {name: module for name, module in sys.modules.items() if name.startswith(package)}


def test_a_name_is_importable_in_the_block_and_not_after_it(names: ForeignNames) -> None:
    with names.installed():
        found = run("from strange import answer\nfrom strange.api.deep import _private, load")
        starred = run("from strange.api.deep import *")
    assert (found["answer"], found["load"], found["_private"]) == (42, len, {})
    assert (starred["load"], "_private" in starred) == (len, False)
    with pytest.raises(ModuleNotFoundError, match="No module named 'strange'"):
        importlib.import_module("strange")
    assert modules_of("strange") == {}


def test_a_path_may_be_a_module_of_ours_and_has_its_public_names(names: ForeignNames) -> None:
    with names.installed():
        own = importlib.import_module("strange.api.own")
        assert own.ForeignNames is ForeignNames
        assert not hasattr(own, "get_close_matches")  # imported there, not public
    assert own.__all__ == list(foreign_names.__all__) == list(public_names(foreign_names))


def test_modules_below_are_attributes_before_anybody_imports_them(names: ForeignNames) -> None:
    with names.installed():
        strange = importlib.import_module("strange")
    assert strange.api.deep.load is len  # also after the block, by a module that was kept


def test_the_block_tells_which_paths_were_imported(names: ForeignNames) -> None:
    with names.installed() as imported:
        assert imported == set()
        importlib.import_module("strange.api.deep")
        assert imported == {"strange", "strange.api", "strange.api.deep"}
    with names.installed() as imported:
        importlib.import_module("strange")
    assert imported == {"strange"}


def test_blocks_nest_and_an_inner_block_tells_its_own_imports(names: ForeignNames) -> None:
    with names.installed() as outer:
        first = importlib.import_module("strange.api")
        with names.installed() as inner:
            assert inner == set()
            assert importlib.import_module("strange.api") is first
            importlib.import_module("strange.api.deep")
        assert inner == {"strange", "strange.api", "strange.api.deep"}
        assert outer == inner
        assert sys.modules["strange.api"] is first
        assert importlib.import_module("strange.api.own").ForeignNames is ForeignNames
    assert modules_of("strange") == {}


@given(st.lists(st.sampled_from(["open", "close", "fail", "import"]), max_size=12))
def test_whatever_blocks_do_nothing_of_them_stays(steps: list[str]) -> None:
    names = ForeignNames("strange", {"a.b": {"x": 1}})
    before, finders = dict(sys.modules), list(sys.meta_path)

    def run_block() -> None:
        while steps:
            match steps.pop():
                case "open":
                    with suppress(ZeroDivisionError), names.installed():
                        run_block()
                case "import" if names in sys.meta_path:
                    assert importlib.import_module("strange.a.b").x == 1
                case "close":
                    return
                case "fail":
                    raise ZeroDivisionError

    with suppress(ZeroDivisionError):
        run_block()
    assert sys.modules == before
    assert sys.meta_path == finders


def test_a_real_package_of_the_name_is_neither_replaced_nor_removed(
    names: ForeignNames, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ModuleType("strange")
    monkeypatch.setitem(sys.modules, "strange", real)
    message = "names of strange: found strange from elsewhere, already imported"
    with pytest.raises(RegistryError, match=message), names.installed():
        pass
    with pytest.raises(RegistryError, match=message):
        names.install()
    names.remove()
    assert sys.modules["strange"] is real


def test_a_package_with_a_longer_name_is_another_one(
    names: ForeignNames, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "strangely", ModuleType("strangely"))
    with names.installed():
        importlib.import_module("strange")
        assert "strangely" in sys.modules
    assert "strangely" in sys.modules


PROGRAM = """\
import sys

from strange.api.deep import lod
"""


def test_an_unknown_name_is_refused_with_the_line_and_a_near_one(
    names: ForeignNames, tmp_path: Path
) -> None:
    file = tmp_path / "program.py"
    with pytest.raises(UnknownImportError) as caught, names.installed():
        run(PROGRAM, str(file))
    assert str(caught.value) == (
        f"{file}:3: found no name 'lod' in strange.api.deep, expected a name that is known here;"
        " did you mean 'load'?"
    )


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("strange.apy", "found no name 'apy' in strange, .*; did you mean 'api'"),
        ("strange.zzz", "found no name 'zzz' in strange, .*; use one of these: answer, api$"),
        ("strange.api.deep.pi", "found no name 'pi' in strange.api.deep, .*: _private, load$"),
        ("strange.none.deep", "found no name 'none' in strange, .*: answer, api$"),
        ("strange.api.answer", "found no name 'answer' in strange.api, .*; import it from strange"),
    ],
)
def test_an_unknown_path_is_refused_with_what_there_is(
    names: ForeignNames, path: str, message: str
) -> None:
    with names.installed(), pytest.raises(UnknownImportError, match=message):
        importlib.import_module(path)


FALL_BACK = """\
try:
    from strange.api.deep import newer as found
except ImportError:
    from strange.api.deep import load as found
"""


def test_a_program_may_try_a_name_and_fall_back(names: ForeignNames) -> None:
    with names.installed():
        assert run(FALL_BACK)["found"] is len
        assert not hasattr(importlib.import_module("strange.api"), "newer")


def test_an_unknown_attribute_is_refused_with_a_near_one(names: ForeignNames) -> None:
    message = "strange.api.deep: found no name 'lod' in .*did you mean 'load'"
    with pytest.raises(UnknownAttributeError, match=message):
        _ = names.module("strange.api.deep").lod


def test_a_name_and_a_module_cannot_share_a_path() -> None:
    with pytest.raises(RegistryError, match=r"names of strange: found a name and a module 'api'"):
        ForeignNames("strange", {"": {"api": 1}, "api.deep": {}})


def test_installing_for_the_process_is_undone_by_removing(names: ForeignNames) -> None:
    names.install()
    names.install()
    try:
        kept = importlib.import_module("strange.api.deep")
        with names.installed():
            pass
        assert sys.modules["strange.api.deep"] is kept
    finally:
        names.remove()
        names.remove()
    assert modules_of("strange") == {}
    assert names not in sys.meta_path
