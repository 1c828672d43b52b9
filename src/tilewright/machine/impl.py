"""``impl: package.module:Class``: a user's block, found and checked when the machine is loaded.

Loading a machine imports the modules that it names, and so runs their code, unless it is refused
(`tilewright.trust`).
"""

import importlib
import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from tilewright.errors import SpecError
from tilewright.machine.spec import BlockSpec, DotArraySpec, SystolicSpec, VectorSpec
from tilewright.trust import check_code_allowed

_NAME = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)", re.ASCII)
EXAMPLE = "write it like package.module:Class"


@dataclass(frozen=True, slots=True)
class Interface:
    """The one method that a block must have, and the names of its parameters."""

    method: str
    parameters: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.method}({', '.join(('self', *self.parameters))})"


class BlockFamily(Enum):
    """Blocks that have one interface."""

    PACKETS = Interface("service", ("packet", "now_ps"))
    GEMM = Interface("cycles", ("m", "n", "k", "dtype"))
    VECTOR = Interface("cycles", ("op", "elements", "dtype"))


def family_of(spec: BlockSpec) -> BlockFamily:
    """Which interface a user's class in place of this block needs."""
    match spec:
        case DotArraySpec() | SystolicSpec():
            return BlockFamily.GEMM
        case VectorSpec():
            return BlockFamily.VECTOR
        case _:
            return BlockFamily.PACKETS


def resolve_impl(
    impl: str,
    family: BlockFamily,
    parameters: Mapping[str, int | str | bool],
    *,
    where: str = "impl",
) -> type:
    """The class that ``impl`` names, if it can be called as Class(name=, spec=, **parameters).

    Imports its module: a CodeRefusedError where code of files is refused.
    """
    match = _NAME.fullmatch(impl)
    if match is None:
        raise SpecError(where, repr(impl[:80]), "a module and a class", EXAMPLE)
    check_code_allowed(where, f"{impl}, a class of a module that would be imported")
    module_name, class_name = match.groups()
    found = _attribute(where, module_name, class_name)
    if not inspect.isclass(found):
        kind = type(found).__name__
        raise SpecError(where, f"{impl}, which is a {kind}", "a class", "name the class itself")
    _check_method(where, impl, found, family.value)
    _check_constructor(where, impl, found, parameters)
    return found


def _attribute(where: str, module_name: str, class_name: str) -> object:
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # it is the user's code, and may raise anything
        found = (
            f"a module {module_name!r} that cannot be imported ({type(error).__name__}: {error})"
        )
        fix = "install it, or put its directory on PYTHONPATH"
        raise SpecError(where, found, "an importable module", fix) from error
    if not hasattr(module, class_name):
        found = f"no {class_name!r} in module {module_name!r}"
        raise SpecError(where, found, "a class of the module", "correct the name")
    return getattr(module, class_name)


def _check_method(where: str, impl: str, found: type, interface: Interface) -> None:
    method = getattr(found, interface.method, None)
    signature = _signature(method) if callable(method) else None
    if signature is None:
        fix = f"write the method {interface}"
        raise SpecError(where, f"{impl} without {interface.method}()", str(interface), fix)
    # called by position, so the names may not change places; more needs a default
    names = tuple(signature.parameters)[1:]
    expected = interface.parameters
    try:
        signature.bind(None, *expected)
    except TypeError:
        names = (*names, "")
    if names[: len(expected)] != expected or "" in names:
        text = f"{impl} with {interface.method}{signature}"
        raise SpecError(where, text, str(interface), "name the parameters so, in this order")


def _check_constructor(
    where: str, impl: str, found: type, parameters: Mapping[str, int | str | bool]
) -> None:
    taken = sorted({"name", "spec"} & parameters.keys())
    if taken:
        text = f"a parameter {taken[0]!r}"
        raise SpecError(where, text, "a name of its own", "every block gets name and spec anyway")
    signature = _signature(found)
    try:
        if signature is not None:
            signature.bind(name="", spec=None, **parameters)
    except TypeError as error:
        call = ", ".join(("name", "spec", *parameters))
        text = f"{impl}{signature}, which cannot take them ({error})"
        fix = "correct the parameters in the file, or those of __init__"
        raise SpecError(where, text, f"a class that takes {call} by name", fix) from error


def _signature(target: object) -> inspect.Signature | None:
    try:
        return inspect.signature(target) if callable(target) else None
    except (ValueError, TypeError):  # written in C, without a signature to look at
        return None
