"""Files of kernels by what they are made from."""

from collections import OrderedDict
from dataclasses import asdict, dataclass, field

from tilewright.attention.codegen.compile import compile_graph
from tilewright.attention.codegen.plan.target import Cut, Target, Tiling
from tilewright.attention.codegen.source.file import KernelFile
from tilewright.attention.graph import Graph, graph_hash
from tilewright.canonical import content_hash
from tilewright.records.document import installed_version


def kernel_key(
    graph: Graph,
    tiling: Tiling | None = None,
    target: Target | None = None,
    cut: Cut | None = None,
    *,
    by_mass: bool = False,
    most: int | None = None,
) -> str:
    """Return a hash of all that a file of kernels depends on, the generator's version included."""
    return content_hash(
        {
            "graph": graph_hash(graph),
            "flow": graph.name,
            "tiling": None if tiling is None else asdict(tiling),
            "target": None if target is None else _plain(asdict(target)),
            "cut": None if cut is None else _plain(asdict(cut)),
            "by_mass": by_mass,
            "most": most,
            "version": installed_version(),
        }
    )


def _plain(fields: dict[str, object]) -> dict[str, object]:
    """Return the fields with sets as lists in a fixed order."""
    return {
        name: sorted(value) if isinstance(value, frozenset) else value
        for name, value in fields.items()
    }


@dataclass(slots=True)
class KernelCache:
    """Compiles a flow once. Holds so many files; the one that was asked for longest ago goes."""

    capacity: int = 256
    num_compiled: int = 0
    _files: OrderedDict[str, KernelFile] = field(default_factory=OrderedDict)

    def compile_graph(
        self,
        graph: Graph,
        tiling: Tiling | None = None,
        target: Target | None = None,
        cut: Cut | None = None,
        *,
        by_mass: bool = False,
        most: int | None = None,
    ) -> KernelFile:
        key = kernel_key(graph, tiling, target, cut, by_mass=by_mass, most=most)
        if key not in self._files:
            self._files[key] = compile_graph(graph, tiling, target, cut, by_mass=by_mass, most=most)
            self.num_compiled += 1
        self._files.move_to_end(key)
        while len(self._files) > self.capacity:
            self._files.popitem(last=False)
        return self._files[key]
