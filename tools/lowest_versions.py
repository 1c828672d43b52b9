"""Prints pip constraints: each dependency of ``pyproject.toml`` at the lowest version it allows."""

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

# a name, and bounds that both were tried: `name>=1.2,<3`, or `name==1.2`
BOUNDED = re.compile(r"([\w.-]+)(?:>=([\d.]+),<[\d.]+|==([\d.]+))")


def main(path: Path) -> int:
    """Print the constraints; return 1 and name each requirement without both bounds, if any."""
    project = tomllib.loads(path.read_text())
    own_name = project["project"]["name"]
    lowest: dict[str, str] = {}
    unbounded: list[str] = []
    for requirement in requirements_of(project):
        if re.match(rf"{own_name}\b", requirement):  # an extra that contains others
            continue
        match = BOUNDED.fullmatch(requirement)
        if match is None:
            unbounded.append(requirement)
            continue
        name, *versions = match.groups()
        found = lowest.get(name, "0"), *filter(None, versions)
        lowest[name] = max(found, key=numbers_of)  # an extra may ask for more than another does
    for requirement in unbounded:
        print(
            f"{path}: found {requirement!r}, expected 'name>=low,<high' or 'name==version'; "
            "give it bounds that were tried",
            file=sys.stderr,
        )
    print("\n".join(f"{name}=={version}" for name, version in lowest.items()))
    return int(bool(unbounded))


def numbers_of(version: str) -> tuple[int, ...]:
    """Return what versions are compared by."""
    return tuple(map(int, version.split(".")))


def requirements_of(project: Mapping[str, Any]) -> Iterator[str]:
    """Yield what builds, runs and tests the project, in the order of the file."""
    yield from project["build-system"]["requires"]
    yield from project["project"]["dependencies"]
    for extra in project["project"]["optional-dependencies"].values():
        yield from extra


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
