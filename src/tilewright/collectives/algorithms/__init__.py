"""The algorithms that there are: every module here has a tuple ``ALGORITHMS`` of its own."""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules

from tilewright.collectives.algorithm import Algorithm, build_table
from tilewright.collectives.operation import Operation
from tilewright.errors import CollectiveError


def load_algorithms() -> Mapping[str, Algorithm]:
    """Import all modules of this package and return their algorithms, the preferred ones first."""
    modules = [import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__)]
    algorithms = (each for module in modules for each in module.ALGORITHMS)
    return build_table(sorted(algorithms, key=lambda each: (each.preference, each.name)))


ALGORITHMS = load_algorithms()


def find_algorithm(
    name: str, operation: Operation, algorithms: Mapping[str, Algorithm] = ALGORITHMS
) -> Algorithm:
    """By name; one that cannot carry out the operation is refused."""
    algorithm = algorithms.get(name)
    able = [each.name for each in algorithms.values() if operation in each.operations]
    if algorithm is None or operation not in algorithm.operations:
        found = f"the algorithm {name!r}"
        expected = f"one that can: {', '.join(able)}"
        raise CollectiveError(operation.value, found, expected, "name one of these, or 'auto'")
    return algorithm
