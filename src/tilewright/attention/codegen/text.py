"""The text of a kernel from its parts."""

from collections.abc import Mapping, Sequence

__all__ = ("kernel_text",)


def kernel_text(name: str, purpose: str, arguments: Mapping[str, str], lines: Sequence[str]) -> str:
    """A jitted function; each argument stands on a line of its own with what it holds."""
    listed = [
        f"    {item},  # {holds}" if holds else f"    {item}," for item, holds in arguments.items()
    ]
    body = [f"    {line}" if line else "" for line in lines]
    return "\n".join(
        ["@triton.jit", f"def {name}(", *listed, "):", f'    """{purpose}"""', *body, ""]
    )
