"""The drill of docs/architecture.md: a new function of the language is its meaning and its name."""

import json
from pathlib import Path
from textwrap import dedent

from tests.changed_package import copy_package, output_of

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


def test_a_new_function_is_its_meaning_and_its_name(tmp_path: Path) -> None:
    language = copy_package(tmp_path, "language") / "language"
    meaning, library = language / "meaning/elementwise.py", language / "library/libdevice.py"
    text = meaning.read_text()
    assert text.count(MEANING) == 1
    meaning.write_text(text.replace(MEANING, NEW_MEANING))
    library.write_text(library.read_text() + NEW_NAME)
    found = json.loads(output_of(tmp_path, USER))
    assert found["is_right"]
    assert found["is_public"]
    assert found["in_libdevice"]
    assert found["copy_ps"] < found["add_ps"] < found["exp_ps"] == found["new_ps"]
