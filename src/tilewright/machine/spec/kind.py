"""How a section that may be of several kinds says which one it is."""

from collections.abc import Callable


def kind_or(default: str) -> Callable[[object], str | None]:
    """Reads the kind of a section; one that does not say it is of the default kind.

    >>> kind_or("mesh")({"rows": 6}), kind_or("mesh")({"kind": "ring"})
    ('mesh', 'ring')
    """

    def kind_of(section: object) -> str | None:
        if isinstance(section, dict):
            return str(section.get("kind", default))
        return getattr(section, "kind", None)

    return kind_of
