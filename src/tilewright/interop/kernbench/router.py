"""Names of ``kernbench.policy.routing.router``, which are refused: routes are the machine's."""

from typing import Any, NoReturn

from tilewright.errors import ProgramError

__all__ = ("AddressResolver", "PathRouter")


class _Refused:
    """A class of KernBench's insides that has no counterpart for programs."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        name = f"kernbench.policy.routing.router.{type(self).__name__}"
        expected = "a program that leaves routing to the machine"
        fix = "remove it: the trace of a request has its path, `tilewright machine show` the links"
        raise ProgramError(name, "a class without a counterpart", expected, fix)


class AddressResolver(_Refused):
    """From an address to a node; refused."""


class PathRouter(_Refused):
    """From node to node; refused."""
