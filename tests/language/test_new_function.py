"""The drill of docs/architecture.md: a new function of the language is its meaning and its name."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import tilewright

PACKAGE = Path(tilewright.__file__).parent
MEANING = '    *_floats(\n        ("acos",'
NEW_MEANING = (
    "    *_floats(\n"
    '        ("softplus", lambda array: np.logaddexp(array, array.dtype.type(0)), "exp"),\n'
    '        ("acos",'
)
NEW_NAME = 'softplus = _function("softplus", 1)\n'
USER = dedent(
    """
    import json
    import numpy as np
    from tilewright import language
    from tilewright.machine import build_machine, parse_machine
    from tilewright.runtime.workspace import Workspace

    def kernel_of(name):
        def kernel(x_ptr, y_ptr, n, tl):
            places = tl.arange(0, 4096)
            mask = places < n
            x = tl.load(x_ptr + places, mask=mask)
            tl.store(y_ptr + places, x if name is None else getattr(tl, name)(x), mask=mask)
        return kernel

    machine = build_machine(parse_machine("ahbm-small"))
    values = np.linspace(-20, 20, 4000, dtype=np.float32)

    def run(name):
        workspace, pes = Workspace(machine), list(machine.grid.pes())[:1]
        x, y = (workspace.place(each, pes) for each in (values, np.zeros_like(values)))
        result = workspace.launch(kernel_of(name), x, y, values.size, grid=(1,), pes=pes)
        return workspace.read(y), result.latency_ps

    found, new_ps = run("softplus")
    print(json.dumps({
        "is_right": bool((found == np.logaddexp(values, np.float32(0))).all()),
        "is_public": "softplus" in language.__all__,
        "in_libdevice": language.extra.libdevice.softplus is language.softplus,
        "new_ps": new_ps,
        "exp_ps": run("exp")[1],
        "add_ps": run("abs")[1],
        "copy_ps": run(None)[1],
    }))
    """
)


def changed_package(directory: Path) -> Path:
    """The package with a language of its own, to which two files add a function."""
    package = directory / "tilewright"
    package.mkdir()
    for entry in PACKAGE.iterdir():
        if entry.name != "language":
            (package / entry.name).symlink_to(entry)
    language = package / "language"
    shutil.copytree(PACKAGE / "language", language, ignore=shutil.ignore_patterns("__pycache__"))
    meaning, library = language / "meaning/elementwise.py", language / "library/libdevice.py"
    text = meaning.read_text()
    assert text.count(MEANING) == 1
    meaning.write_text(text.replace(MEANING, NEW_MEANING))
    library.write_text(library.read_text() + NEW_NAME)
    return directory


def test_a_new_function_is_its_meaning_and_its_name(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(changed_package(tmp_path))}
    command = [sys.executable, "-c", USER]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["is_right"]
    assert found["is_public"]
    assert found["in_libdevice"]
    assert found["copy_ps"] < found["add_ps"] < found["exp_ps"] == found["new_ps"]
