"""The names that vulture leaves alone are names of the package, each listed once."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMES = re.findall(r"^_\.(\w+)$", (ROOT / "tools" / "vulture_names.py").read_text(), re.MULTILINE)


def test_every_listed_name_stands_in_the_package_and_once_in_the_list() -> None:
    words: set[str] = set()
    for file in (ROOT / "src").rglob("*.py"):
        words.update(re.findall(r"\w+", file.read_text("utf-8")))
    assert NAMES
    assert sorted(set(NAMES) - words) == []
    assert len(NAMES) == len(set(NAMES))
