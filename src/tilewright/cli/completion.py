"""What a shell offers for words whose values are known, each with its line of a list."""

from tilewright.cli.commands import load

Offer = list[tuple[str, str]]


def complete_machine() -> Offer:
    """Offer the machines that ship."""
    return _summaries("machine_list")


def complete_program() -> Offer:
    """Offer the ready programs."""
    return _summaries("list_")


def complete_flow() -> Offer:
    """Offer the ready flows."""
    return _summaries("attention_list")


def _summaries(module: str) -> Offer:
    """By the module of the list, which is loaded when a shell asks."""
    offer: Offer = load(module, "summaries")()
    return offer
