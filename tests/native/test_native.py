import subprocess
import sys

BROKEN_CORE = """
import sys

class Broken:
    def find_spec(self, name, path=None, target=None):
        if name == "tilewright.native._core":
            raise ImportError("undefined symbol")

sys.meta_path.insert(0, Broken())
import tilewright.native
"""


def test_a_core_that_does_not_load_is_an_error_and_not_a_slower_engine() -> None:
    run = subprocess.run([sys.executable, "-c", BROKEN_CORE], capture_output=True, text=True)
    assert run.returncode == 1
    assert "a compiled core that does not load (undefined symbol)" in run.stderr
