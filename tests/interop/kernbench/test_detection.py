"""Which files are written for KernBench: those that import it, through whichever file."""

from pathlib import Path

import pytest

from tilewright.interop.kernbench.detection import imports_kernbench

KERNBENCH = "from kernbench.policy.placement.dp import DPPolicy\n"

BESIDE: dict[str, tuple[str, dict[str, str]]] = {
    "itself": (KERNBENCH, {}),
    "the package": ("import numpy, kernbench\n", {}),
    "inside a function": ("def run(torch):\n    import kernbench.ccl.install\n", {}),
    "a file beside it": ("import kernels\n", {"kernels.py": KERNBENCH}),
    "a file of a file": (
        "import one\n",
        {"one.py": "import two, one\n", "two.py": KERNBENCH},
    ),
    "a package": ("import lib\n", {"lib/__init__.py": KERNBENCH}),
    "a module of a package": ("from lib.deep import policy\n", {"lib/deep/policy.py": KERNBENCH}),
    "a package around a module": (
        "import lib.other\n",
        {"lib/__init__.py": KERNBENCH, "lib/other.py": ""},
    ),
    "a relative import of a package": (
        "import lib\n",
        {"lib/__init__.py": "from .deep import policy\n", "lib/deep/policy.py": KERNBENCH},
    ),
    "a relative import from above": (
        "import lib.deep.one\n",
        {"lib/deep/one.py": "from ..two import x\n", "lib/two.py": KERNBENCH},
    ),
}


@pytest.mark.parametrize("case", BESIDE)
def test_an_import_is_found_wherever_it_stands(case: str, tmp_path: Path) -> None:
    text, beside = BESIDE[case]
    for name, content in beside.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    assert imports_kernbench(tmp_path / "program.py", text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "import numpy\n",
        "import kernbench_of_mine\n",
        "from tilewright.interop import kernbench\n",
        "from . import kernels, kernbench\nfrom .... import kernbench\n",
        "'import kernbench'\n",
        "import kernbench and not Python\n",
        "import kernbench\0",
    ],
)
def test_other_files_are_not(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in (tmp_path, Path()):
        assert not imports_kernbench(folder / "program.py", text.encode())
