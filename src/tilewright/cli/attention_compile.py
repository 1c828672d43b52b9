"""``tilewright attention compile``: the kernels of a flow as text."""

from enum import StrEnum
from typing import Annotated

import typer

from tilewright.attention.codegen import Tiling, compile_graph
from tilewright.attention.compat import find_flow, vortex_names
from tilewright.attention.flow import trace_flow
from tilewright.attention.passes import optimize_graph
from tilewright.attention.verify import geometries

__all__ = ("compile_",)


class Target(StrEnum):
    """The language of the text."""

    TRITON = "triton"


def compile_(
    flow: Annotated[
        str, typer.Argument(metavar="FILE|NAME", help="A flow file, or the name of a ready flow.")
    ],
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which flow of a file with several.")
    ] = None,
    emit: Annotated[Target, typer.Option(help="What to print.")] = Target.TRITON,
    page_size: Annotated[int, typer.Option(min=1, help="Tokens of a page.")] = 16,
    head_dim: Annotated[
        int | None,
        typer.Option(min=1, help="Width of a key: 128, or 576 for the latents of MLA flows."),
    ] = None,
    group: Annotated[
        int | None,
        typer.Option(min=1, help="Query heads that share a KV head: 4, or 16 for MLA flows."),
    ] = None,
    page_tile: Annotated[
        int, typer.Option(help="Most pages of a program that computes values per page.")
    ] = 16,
    part_pages: Annotated[
        int, typer.Option(min=1, help="Listed pages of one program of attention.")
    ] = 64,
) -> None:
    """Print the kernels of a flow: plain Triton, one file.

    An op that has no kernel is an error that names it.

    tilewright attention compile quest > quest_kernels.py
    """
    del emit  # the parser has checked it, and there is one
    with vortex_names():
        label, made = find_flow(flow, name=name)
        sizes = geometries(page_size=page_size, head_dim=head_dim, query_heads=group)
        graph = optimize_graph(trace_flow(made, sizes[made.kind], name=label))
    tiling = Tiling(page_tile=page_tile, part_pages=part_pages)
    print(compile_graph(graph, tiling).text, end="")  # as it is: a view would be wrapped
    raise typer.Exit
