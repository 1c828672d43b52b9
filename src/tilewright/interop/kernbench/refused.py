"""Names of KernBench that programs may import, and that say what to use instead when used."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from tilewright.errors import ProgramError
from tilewright.interop.kernbench.detection import PACKAGE


class Refused:
    """A class that cannot be made, called or asked for anything."""

    refusal: ClassVar[tuple[str, str, str, str]]  # the parts of the error

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        raise ProgramError(*self.refusal)


class PeCommand(Refused):
    """A command of a PE. Only ``tl`` issues them: none is made by hand, and no list holds them."""

    refusal = (
        "PeCommand",
        "a PeCommand made by hand",
        "commands that tl issues as the kernel runs",
        "write a call of tl in a kernel, and launch it",
    )


_COMMANDS: Mapping[str, Mapping[str, str]] = {
    "common.pe_commands": {
        "DmaReadCmd": "tl.load(ptr, shape, dtype)",
        "DmaWriteCmd": "tl.store(ptr, handle)",
        "GemmCmd": "tl.dot(a, b)",
        "MathCmd": "an operator between handles, or tl.exp and the like,",
        "CompositeCmd": "tl.composite(op, a, b, out_ptr)",
        "WaitCmd": "tl.wait(handle)",
        "PeCpuOverheadCmd": "nothing: the machine file has the cost of a command; leave it out",
    },
    "common.ipcq_types": {
        "IpcqSendCmd": "tl.send(dir, src=handle)",
        "IpcqRecvCmd": "tl.recv(dir, shape, dtype)",
        "IpcqInitMsg": "tl.send and tl.recv behind torch.install_ipcq(...)",
        "IpcqDmaToken": "tl.send(dir, src=handle)",
    },
}
"""Commands by module path and name, with what a kernel says for each."""
_UNNEEDED = "a use of it", "names that programs need"
_OUTSIDE: Mapping[str, tuple[str, str, str, str]] = {
    "policy.routing.router": (
        "AddressResolver PathRouter",
        "a class without a counterpart",
        "a program that leaves routing to the machine",
        "remove it: the trace of a request has its path, `tilewright machine show` the links",
    ),
    "cli.main": ("main", *_UNNEEDED, "use the command line: tilewright run FILE"),
    "probes.probe": ("run_probe main", *_UNNEEDED, "use the command line: tilewright probe"),
}
"""By module path: names without a counterpart for programs, and the error's parts behind them."""


def _command(name: str, instead: str) -> type[Refused]:
    expected, fix = PeCommand.refusal[2], f"write {instead} in a kernel, and launch it"
    return _refused(name, PeCommand, name, f"a {name} made by hand", expected, fix)


def _refused(name: str, base: type[Refused], *refusal: str) -> type[Refused]:
    return type(name, (base,), {"refusal": refusal})


REFUSED: Mapping[str, Mapping[str, type[Refused]]] = MappingProxyType(
    {
        path: {name: _command(name, instead) for name, instead in commands.items()}
        for path, commands in _COMMANDS.items()
    }
    | {
        path: {
            name: _refused(name, Refused, f"{PACKAGE}.{path}.{name}", *parts)
            for name in names.split()
        }
        for path, (names, *parts) in _OUTSIDE.items()
    }
)
"""Classes by module path below the package and name."""
