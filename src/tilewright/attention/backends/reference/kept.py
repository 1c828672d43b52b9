"""What a session keeps of a request between steps, by name."""

from tilewright.attention.backends.reference.namespace import Namespace
from tilewright.attention.graph import DType, Graph, Side
from tilewright.attention.ops.leaf import AttentionMass, PromptMass
from tilewright.attention.paging import StateField

MASS = "#mass"  # names of flows are Python identifiers, so these cannot clash with them


def selection_name(branch: int) -> str:
    return f"#selection{branch}"


def prompt_mass_name(window: int) -> str:
    return f"#prompt_mass{window}"


def wants_mass(graph: Graph) -> bool:
    return any(isinstance(node.op, AttentionMass) for node in graph.nodes(Side.INDEXER))


def prompt_windows(graph: Graph) -> tuple[int, ...]:
    """Windows of prompt queries that the flow observes."""
    found = {
        node.op.window for node in graph.nodes(Side.INDEXER) if isinstance(node.op, PromptMass)
    }
    return tuple(sorted(found))


def kept_fields(graph: Graph, namespace: Namespace) -> tuple[StateField, ...]:
    """State variables of the flow, masses, and the last selections."""
    float32, boolean = namespace.dtypes[DType.FLOAT32], namespace.dtypes[DType.BOOL]
    heads = graph.geometry.query_heads
    fields = [
        StateField(state.name, state.type.shape, namespace.dtypes[state.type.dtype])
        for state in graph.states
    ]
    fields.append(StateField(MASS, (1, heads), float32))
    fields += [
        StateField(prompt_mass_name(window), (1, heads), float32)
        for window in prompt_windows(graph)
    ]
    for index, branch in enumerate(graph.output.branches):
        if branch.selection is not None:
            shape = branch.selection.type.shape
            fields.append(StateField(selection_name(index), shape, boolean))
    return tuple(fields)
