"""The names of the package itself: the classes that there are, loaded when they are used."""

import subprocess
import sys
from importlib.metadata import version

import pytest

import tilewright
from tilewright import attention, host, machine
from tilewright.errors import SpecError
from tilewright.studies.run.command import run

LOADED = """
import sys
import tilewright
print(*(name for name in sys.modules if name.startswith(("tilewright.", "numpy", "pydantic"))))
tilewright.load_machine
print("tilewright.machine" in sys.modules, "tilewright.host" in sys.modules)
"""


def test_a_name_of_the_package_is_what_its_own_package_has() -> None:
    assert tilewright.RuntimeContext is host.RuntimeContext
    assert tilewright.DPPolicy is host.DPPolicy
    assert tilewright.Split is host.Split
    assert tilewright.Interleave is host.Interleave
    assert tilewright.LocalShard is host.LocalShard
    assert tilewright.LocalSize is host.LocalSize
    assert tilewright.load_machine is machine.load_machine
    assert tilewright.run is run
    assert tilewright.attention is attention
    assert tilewright.__version__ == version("tilewright")


def test_importing_the_package_loads_nothing_and_a_name_what_it_needs() -> None:
    command = (sys.executable, "-c", LOADED)
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert found.splitlines() == ["", "True False"]


def test_all_names_are_listed_and_no_other_is_found() -> None:
    assert set(tilewright.__all__) <= set(dir(tilewright))
    with pytest.raises(AttributeError, match="module 'tilewright' has no attribute 'laod_machine'"):
        tilewright.laod_machine  # type: ignore[attr-defined]  # noqa: B018


def test_a_machine_is_built_from_a_preset_with_overrides() -> None:
    built = tilewright.load_machine("ahbm-small", ["pe.gemm.hz=2000000000"])
    assert built.grid.num_pes == 16
    assert built.spec.pe.gemm.hz == 2_000_000_000
    with pytest.raises(SpecError, match="did you mean 'ahbm'"):
        tilewright.load_machine("ahbn")
