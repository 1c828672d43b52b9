"""Flows by name. A name has one owner."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from tilewright.attention.flow.flow import FlowBase
from tilewright.errors import RegistryError, meant

FlowClass = TypeVar("FlowClass", bound=type[FlowBase])

_REGISTRY: dict[str, type[FlowBase]] = {}
_current: ContextVar[dict[str, type[FlowBase]]] = ContextVar("flows", default=_REGISTRY)


def register(name: str) -> Callable[[FlowClass], FlowClass]:
    """Class decorator: makes a flow known by a name."""

    def add(flow: FlowClass) -> FlowClass:
        where = f"register({name!r})"
        if not isinstance(name, str) or not name:
            raise RegistryError("register", repr(name), "a name", "pass a string")
        if not (isinstance(flow, type) and issubclass(flow, FlowBase)):
            expected = "a class derived from vFlow or vFlowMLA"
            raise RegistryError(where, repr(flow), expected, "derive it")
        owner = _current.get().get(name)
        if owner is not None:
            found = f"{flow.__qualname__}, after {owner.__module__}.{owner.__qualname__}"
            raise RegistryError(where, found, "one owner for a name", "rename one of them")
        _current.get()[name] = flow
        return flow

    return add


def get(name: str) -> type[FlowBase]:
    """The class that was registered under a name: by the file that is being loaded, or at all."""
    for table in (_current.get(), _REGISTRY):
        if name in table:
            return table[name]
    known = list_keys()
    fix = meant(name, known, "register it, or name its file")
    expected = f"one of {', '.join(known) or '(none is registered)'}"
    raise RegistryError("flows", f"no flow {name!r}", expected, fix)


def has(name: str) -> bool:
    return name in _current.get() or name in _REGISTRY


def list_keys() -> list[str]:
    return sorted({*_current.get(), *_REGISTRY})


@contextmanager
def collect_flows() -> Iterator[dict[str, type[FlowBase]]]:
    """Names registered inside belong to the dict that is yielded, and to nothing else.

    So a file can be loaded twice, and can have names that another file has too.
    """
    found: dict[str, type[FlowBase]] = {}
    token = _current.set(found)
    try:
        yield found
    finally:
        _current.reset(token)
