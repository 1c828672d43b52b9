"""A copy of the checkout in which a file may be broken, with an environment that imports it."""

import shutil
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

CORE = "tilewright.native._core"
# The installation's own hook for coverage of subprocesses is among the files that are not borrowed.
START_COVERAGE = (
    'import os; "COVERAGE_PROCESS_START" in os.environ and __import__("coverage").process_startup()'
)


@dataclass(frozen=True, slots=True)
class Copy:
    """A folder with the files of the checkout and an environment of its own in ``.venv``."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / ".venv" / "bin" / "python"


def make_copy(root: Path, folder: Path) -> Copy:
    """Copy the files that git knows, and the compiled core; an older copy is replaced.

    The environment borrows this one's packages, but for the installation of the checkout itself.
    """
    shutil.rmtree(folder, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (root / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target)
    copy = Copy(folder)
    core = _core_file()
    shutil.copy2(core, folder / "src" / "tilewright" / "native" / core.name)
    venv.create(folder / ".venv", with_pip=False, symlinks=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / ".venv" / "lib" / version / "site-packages"
    lines = (folder / "src", sysconfig.get_path("purelib"), START_COVERAGE)
    (packages / "copy.pth").write_text("".join(f"{line}\n" for line in lines))
    return copy


def _core_file() -> Path:
    """Return the file of the compiled core that is installed here."""
    look = f"import importlib.util as u; print(u.find_spec({CORE!r}).origin)"
    found = subprocess.run([sys.executable, "-c", look], check=True, capture_output=True, text=True)
    return Path(found.stdout.strip())
