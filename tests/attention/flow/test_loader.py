import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from tilewright.attention.flow import build_vflow, find_flow, load_flows
from tilewright.errors import FlowError, FlowInitError, FlowLoadError, RegistryError

FLOW = """
from tilewright.attention import register, vFlow

@register("mine")
class Mine(vFlow):
    def __init__(self, width=3, *, deep=False):
        self.width = width
    def forward_indexer(self, q, o, cache, ctx):
        o.select(cache["k"].mean(1).max(2).topk())
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(FLOW)
    return path


def test_a_flow_is_built_from_its_file_by_name(file: Path) -> None:
    flow = build_vflow("mine", {"width": 5}, file)
    assert flow.width == 5  # type: ignore[attr-defined]


def test_an_unknown_name_lists_those_of_the_file(file: Path) -> None:
    with pytest.raises(FlowLoadError, match="found no flow 'other', expected one of mine"):
        build_vflow("other", None, file)


def test_keyword_arguments_are_checked_against_the_constructor(file: Path) -> None:
    with pytest.raises(FlowInitError, match=r"unexpected keyword argument 'size'.*Mine\(width=3"):
        build_vflow("mine", {"size": 5}, file)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FlowLoadError, match="found a file that cannot be read"):
        load_flows(tmp_path / "nothing.py")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import no_such_library", "found an import that fails: No module named 'no_such_library'"),
        ("x = (", "found a syntax error"),
        ("x = 1\0", r"\.py:1: found a syntax error"),
        pytest.param("-" * 100_000 + "1", "found (Memory|Recursion)Error", id="deep"),
        ("x = 1 / 0", "bad.py:1: found ZeroDivisionError"),
        ("x = 1", "found no registered flow"),
        ("\0", "bad.py"),
        ("raise SystemExit(3)", "found SystemExit"),
    ],
)
def test_a_file_that_does_not_load_says_what_and_where(
    tmp_path: Path, text: str, found: str
) -> None:
    path = tmp_path / "bad.py"
    path.write_text(text)
    with pytest.raises(FlowLoadError, match=found):
        load_flows(path)


def test_a_name_registered_twice_in_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "twice.py"
    path.write_text(FLOW + FLOW)
    with pytest.raises(RegistryError, match=r"register\('mine'\): found Mine, after"):
        load_flows(path)


def test_an_op_with_a_wrong_attribute_in_a_constructor_is_told_with_its_line(
    tmp_path: Path,
) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(
        FLOW.replace("self.width = width", "from tilewright.attention.indexer import Mean; Mean(7)")
    )
    with pytest.raises(FlowInitError.__mro__[1], match=r"wrong\.py:7, Mean: found dim=7"):
        build_vflow("mine", None, path)


def test_a_constructor_that_raises_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "raising.py"
    path.write_text(FLOW.replace("self.width = width", "raise ValueError('no')"))
    with pytest.raises(FlowInitError, match=r"__init__, raising\.py:7: found ValueError: no"):
        build_vflow("mine", None, path)


def test_a_flow_without_an_indexer_cannot_be_made(tmp_path: Path) -> None:
    path = tmp_path / "half.py"
    path.write_text(FLOW.replace("forward_indexer", "forward"))
    with pytest.raises(FlowInitError, match="forward_indexer"):
        build_vflow("mine", None, path)


@contextmanager
def lab_names() -> Iterator[None]:
    """Make a module ``lab`` importable, with a number in it."""
    with pytest.MonkeyPatch.context() as patch:
        module = ModuleType("lab")
        module.__dict__["WIDTH"] = 11
        patch.setitem(sys.modules, "lab", module)
        yield


@pytest.mark.parametrize("text", ["from lab import WIDTH\n{}", "{}"], ids=["top", "constructor"])
def test_names_that_are_passed_in_are_for_the_file_alone(tmp_path: Path, text: str) -> None:
    body = "self.width = WIDTH" if "lab" in text else "import lab; self.width = lab.WIDTH"
    path = tmp_path / "mine.py"
    path.write_text(text.format(FLOW.replace("self.width = width", body)))
    _, found = find_flow(str(path), names=lab_names)
    built = build_vflow("mine", None, path, names=lab_names)
    assert [flow.width for flow in (found, built)] == [11, 11]  # type: ignore[attr-defined]
    assert "lab" not in sys.modules
    with pytest.raises(FlowError, match="No module named 'lab'"):
        find_flow(str(path))


def test_a_ready_flow_is_found_by_name_and_a_file_by_its_path(file: Path) -> None:
    assert find_flow("quest")[0] == "quest"
    assert find_flow(str(file))[0] == "mine"


def test_a_file_with_several_flows_needs_a_name(tmp_path: Path) -> None:
    path = tmp_path / "two.py"
    path.write_text(FLOW + FLOW.replace('"mine"', '"other"'))
    with pytest.raises(FlowLoadError, match="found flows mine, other, expected the name of one"):
        find_flow(str(path))
    assert find_flow(str(path), name="other")[0] == "other"
    with pytest.raises(FlowLoadError, match="found no flow 'third'"):
        find_flow(str(path), name="third")
