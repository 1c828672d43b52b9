"""Program files of users: what is said of an error that Python raises in one."""

import sys
from pathlib import Path

import pytest

from tilewright.errors import ProgramError
from tilewright.interop.program_file import ProgramFile


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("import math\nmath.sqrrt(2)\n", "did you mean 'sqrt'?"),
        ("import math\nmath.zzz\n", "correct the program"),
        ("\nimport nosuch.thing\n", "install nosuch, or correct the import"),
        ("x = 1\nx / 0\n", "correct the program"),
    ],
)
def test_a_misspelt_attribute_is_told_with_the_name_that_it_is_near(
    text: str, remedy: str, tmp_path: Path
) -> None:
    file = tmp_path / "mine.py"
    with pytest.raises(ProgramError) as caught:
        ProgramFile(file, text.encode()).load()
    assert caught.value.where == f"{file}:2 in <module>"
    assert caught.value.args[3] == remedy


@pytest.mark.parametrize(
    ("package", "extra"), [("torch", "bench"), ("triton", "bench"), ("safetensors", "models")]
)
def test_a_missing_optional_package_is_named_with_its_extra(
    package: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # its import fails, installed or not
    file = tmp_path / "program.py"
    file.write_text(f"import {package}\n")
    with pytest.raises(ProgramError) as caught:
        ProgramFile(file, file.read_bytes()).load()
    fix = f"install {package}: run pip install --editable '.[{extra}]' in the checkout"
    assert (caught.value.where, caught.value.fix) == (f"{file}:1 in <module>", fix)
