"""Functions of the language: all that a module here defines under a name without underscore."""

from types import ModuleType

from tilewright.language.library import (
    control,
    creation,
    handle,
    libdevice,
    math,
    memory,
    reduction,
    shape,
)

_MODULES = (control, creation, handle, libdevice, math, memory, reduction, shape)


def _defined_in(module: ModuleType) -> tuple[str, ...]:
    """Return the public names that a module defines, without those that it imports."""
    return tuple(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    )


for _module in _MODULES:
    vars(_module)["__all__"] = _defined_in(
        _module
    )  # for the star imports of ``tilewright.language``

FUNCTIONS = tuple(name for module in _MODULES for name in _defined_in(module))
