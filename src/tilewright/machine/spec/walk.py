"""Every part of a spec with its path."""

from collections.abc import Iterator

from tilewright.machine.spec.quantity import Spec


def walk_sections(spec: Spec, path: str = "") -> Iterator[tuple[str, Spec]]:
    """The spec itself and all specs inside of it, in the order of their fields.

    >>> from tilewright.machine.spec.machine import SipSpec
    >>> [path for path, _ in walk_sections(SipSpec(), "sip")]
    ['sip', 'sip.io', 'sip.io_cpu']
    """
    yield path, spec
    for name in type(spec).model_fields:
        value = getattr(spec, name)
        if isinstance(value, Spec):
            yield from walk_sections(value, f"{path}.{name}" if path else name)
