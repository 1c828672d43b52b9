"""A user's class in place of a block: what is checked when the machine is loaded."""

from pathlib import Path

import pytest

from tilewright.errors import SpecError
from tilewright.machine.impl import BlockFamily, family_of, resolve_impl
from tilewright.machine.parse import parse_machine_text
from tilewright.machine.spec import BlockSpec, MachineSpec
from tilewright.machine.spec.field import walk_sections

MODULE = """
class Router:
    def __init__(self, name, spec, hold_ps=5, label="x"):
        raise RuntimeError("loading must not construct")
    def service(self, packet, now_ps):
        return 1, 1

class Gemm:
    def __init__(self, *, name, spec):
        pass
    def cycles(self, m, n, k, dtype, extra=None):
        return 1

class Vector:
    def __init__(self, **everything):
        pass
    def cycles(self, op, elements, dtype):
        return 1

class Swapped:
    def __init__(self, name, spec):
        pass
    def cycles(self, n, m, k, dtype):
        return 1

class Greedy:
    def __init__(self, name, spec):
        pass
    def service(self, packet, now_ps, more):
        return 1, 1

class Short:
    def __init__(self, name, spec):
        pass
    def service(self, packet):
        return 1, 1

class NoSpec:
    def __init__(self, name):
        pass
    def service(self, packet, now_ps):
        return 1, 1

class NotAMethod(Router):
    service = 5

def function(): pass
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "user_blocks.py").write_text(MODULE)
    (tmp_path / "user_broken.py").write_text("import no_such_library")
    (tmp_path / "user_leaves.py").write_text("raise SystemExit(3)")
    monkeypatch.syspath_prepend(tmp_path)


def test_a_class_that_fits_is_returned_and_not_constructed() -> None:
    found = resolve_impl("user_blocks:Router", BlockFamily.PACKETS, {"hold_ps": 3})
    assert found.__name__ == "Router"


@pytest.mark.parametrize(
    "text",
    [
        "cube: {noc: {impl: 'user_blocks:Router', parameters: {hold_ps: 7, label: y}}}",
        "pe: {gemm: {impl: 'user_blocks:Gemm'}}",
        "pe: {vector: {impl: 'user_blocks:Vector', parameters: {anything: true}}}",
        "cube: {hbm: {impl: 'user_blocks:Router'}}",
    ],
)
def test_a_machine_with_a_fitting_class_is_loaded(text: str) -> None:
    parse_machine_text(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "\npe: {gemm: {impl: Gemm}}",
            r"line 2: pe\.gemm\.impl: found 'Gemm', .*write it like pac",
        ),
        ("pe: {gemm: {impl: 'a b:C'}}", r"found 'a b:C', expected a module and a class"),
        ("pe: {gemm: {impl: ''}}", r"found '', expected a module and a class"),
        ("pe: {gemm: {impl: 'no_such_module:C'}}", r"found a module 'no_such_module' that cannot"),
        ("pe: {gemm: {impl: 'user_broken:C'}}", r"ModuleNotFoundError: No module .*PYTHONPATH"),
        ("pe: {gemm: {impl: 'user_leaves:C'}}", r"'user_leaves' .*\(SystemExit: 3\)"),
        ("pe: {gemm: {impl: 'user_blocks:Gem'}}", r"found no 'Gem' in module 'user_blocks'"),
        ("pe: {gemm: {impl: 'user_blocks:function'}}", r"which is a function, expected a class"),
        (
            "pe: {gemm: {impl: 'user_blocks:Router'}}",
            r"Router without cycles\(\), expected cycles\(",
        ),
        ("pe: {gemm: {impl: 'user_blocks:Vector'}}", r"expected cycles\(self, m, n, k, dtype\)"),
        ("pe: {vector: {impl: 'user_blocks:Gemm'}}", r"expected cycles\(self, op, elements, dtype"),
        ("pe: {gemm: {impl: 'user_blocks:Swapped'}}", r"with cycles\(self, n, m, k, dtype\)"),
        (
            "cube: {sram: {impl: 'user_blocks:Greedy'}}",
            r"with service\(self, packet, now_ps, more\)",
        ),
        (
            "cube: {sram: {impl: 'user_blocks:Short'}}",
            r"with service\(self, packet\), expected serv",
        ),
        ("cube: {sram: {impl: 'user_blocks:NotAMethod'}}", r"NotAMethod without service\(\)"),
        ("cube: {sram: {impl: 'user_blocks:NoSpec'}}", r"NoSpec\(name\), which cannot take them"),
        (
            "cube:\n sram:\n  impl: user_blocks:Router\n  parameters: {hold: 5}",
            r"line 3: cube\.sram\.impl: .*got an unexpected keyword argument 'hold'",
        ),
        (
            "pe:\n mmu: {impl: 'user_blocks:Router'}",
            r"line 2: pe\.mmu\.impl: found an unknown key, expected one of page_bytes",
        ),
        (
            "pe: {vector: {impl: 'user_blocks:Vector', parameters: {spec: x}}}",
            r"found a parameter 'spec', expected a name of its own",
        ),
    ],
)
def test_a_class_that_does_not_fit_is_refused_with_the_line(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_machine_text(text)


def test_every_block_of_the_default_machine_has_a_family() -> None:
    families = {
        path: family_of(section)
        for path, section in walk_sections(MachineSpec())
        if isinstance(section, BlockSpec)
    }
    assert families["pe.gemm"] is BlockFamily.GEMM
    assert families["pe.vector"] is BlockFamily.VECTOR
    rest = {path: one for path, one in families.items() if path not in ("pe.gemm", "pe.vector")}
    assert set(rest.values()) == {BlockFamily.PACKETS}
    links = {"cube.noc", "cube.ucie", "sip.io", "host.pcie", "fabric"}
    assert rest.keys() == links | {"cube.hbm", "cube.sram"}
