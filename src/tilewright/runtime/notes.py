"""Notes of a context for people: what happened that nobody asked for by name."""

from collections.abc import Iterable


class Notes(list[str]):
    """Texts in the order in which they came, each once, however often a program repeats itself."""

    def append(self, text: str) -> None:
        """Add a text, unless it is there."""
        if text not in self:
            super().append(text)

    def extend(self, texts: Iterable[str]) -> None:
        """Add those of the texts that are not there."""
        for text in texts:
            self.append(text)
