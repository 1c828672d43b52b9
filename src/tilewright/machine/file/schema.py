"""What the schema says about a path: which specs may stand there, and which keys they have."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import get_args

from tilewright.machine.spec import MachineSpec
from tilewright.machine.spec.field import Spec

KIND = "kind"
"""The key that tells the members of a union apart."""

SpecTypes = tuple[type[Spec], ...]
"""The specs that a section may be; several for a union, none where no section belongs."""


def child_types(spec_type: type[Spec], key: str) -> SpecTypes:
    """The specs that may stand behind a key.

    >>> from tilewright.machine.spec import CubeSpec
    >>> [found.__name__ for found in child_types(CubeSpec, "noc")]
    ['MeshSpec', 'RingSpec', 'CrossbarSpec']
    """
    fields = spec_type.model_fields
    return _spec_types(fields[key].annotation) if key in fields else ()


def kind_of_type(spec_type: type[Spec]) -> object:
    return spec_type.model_fields[KIND].default


def near_names(word: str, names: Sequence[str]) -> list[str]:
    """The names that a misspelt word may mean, best first.

    >>> near_names("trcd", ["trc", "cl", "rcd"])
    ['trc', 'rcd']
    """
    return get_close_matches(word[:80], names, n=3)  # its time grows with the square of the length


def is_path(text: str) -> bool:
    """If the schema has a field there.

    >>> is_path("cube.noc.radius_um"), is_path("routing table")
    (True, False)
    """
    return text in _all_paths(MachineSpec, "")


def paths_of_key(key: str) -> list[str]:
    """Where the schema has a key of this name."""
    return [path for path in _all_paths(MachineSpec, "") if path.rpartition(".")[2] == key]


def _all_paths(spec_type: type[Spec], prefix: str) -> Iterator[str]:
    for key in spec_type.model_fields:
        yield prefix + key
        for child in child_types(spec_type, key):
            yield from _all_paths(child, f"{prefix}{key}.")


def _spec_types(annotation: object) -> SpecTypes:
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        return (annotation,)
    return tuple(found for part in get_args(annotation) for found in _spec_types(part))
