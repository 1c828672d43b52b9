"""Benches and kernels that a KernBench program registers by name.

KernBench has one registry a process, where the last registration wins. Here each program that is
loaded has its own, which `current_registry` finds while the program is loaded and run.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from tilewright.errors import RegistryError
from tilewright.host import RuntimeContext as HostContext
from tilewright.interop.kernbench.error import ValueProgramError
from tilewright.machine.build import Machine

BuildHost = Callable[[Machine], HostContext]
"""Makes the context of ours that an engine of the program runs on."""


@dataclass(frozen=True, slots=True)
class Bench:
    """An entry of a program: its name, what it measures, its function."""

    name: str
    description: str
    run: Callable[..., Any]


@dataclass(slots=True)
class ProgramRegistry:
    """Benches and kernels of one program, by name, and how its engines are made."""

    build_host: BuildHost = HostContext
    benches: dict[str, Bench] = field(default_factory=dict)
    kernels: dict[str, Callable[..., Any]] = field(default_factory=dict)

    # -- kernbench.benches.registry --------------------------------------------------------------

    def bench(
        self, name: str, description: str = ""
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register the decorated function as a bench."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            if name in self.benches:
                found = f"two benches {name!r}"
                raise RegistryError("bench", found, "one of each name", "rename one of them")
            self.benches[name] = Bench(name, description, function)
            return function

        return register

    def resolve(self, name: str | int) -> Bench:
        """Find a bench by its name, or by its place in the alphabet, counted from 1."""
        listed = self.list_all()
        if isinstance(name, int) or (isinstance(name, str) and name.isdigit()):
            if 1 <= int(name) <= len(listed):
                return listed[int(name) - 1]
        elif name in self.benches:
            return self.benches[name]
        near = get_close_matches(str(name), self.benches, n=1)
        expected = f"one of {', '.join(self.benches)}" if self.benches else "a registered bench"
        fix = f"did you mean {near[0]!r}?" if near else "decorate its function with @bench"
        raise ValueProgramError("resolve", f"no bench {name!r}", expected, fix)

    def list_all(self) -> list[Bench]:
        """Return all benches in the order of their names."""
        return [self.benches[name] for name in sorted(self.benches)]

    # -- kernbench.triton_emu.registry -----------------------------------------------------------

    def register_kernel(self, name: str, function: Callable[..., Any]) -> None:
        """Register a kernel for launch messages; the last registration of a name wins."""
        self.kernels[name] = function


_entered: list[ProgramRegistry] = []  # innermost last; workers of a program see it too


def current_registry() -> ProgramRegistry:
    """Return the registry of the program that runs; outside of all programs a new one."""
    return _entered[-1] if _entered else ProgramRegistry()


@contextmanager
def entered_registry(registry: ProgramRegistry) -> Iterator[None]:
    """Let a registry be the current one while the block runs."""
    _entered.append(registry)
    try:
        yield
    finally:
        _entered.pop()
