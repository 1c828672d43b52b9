"""Every rank exchanges with every other."""

from tilewright.collectives.algorithm import Algorithm
from tilewright.collectives.operation import Call, Operation
from tilewright.collectives.plan import Plan, Script


def plan_direct(call: Call, lane: int) -> Plan:
    """In each turn a rank has one peer to send to; lanes begin with different ones."""
    ranks = call.num_ranks
    is_exchange = call.operation is Operation.ALL_TO_ALL
    script = Script(ranks, ranks * ranks if is_exchange else ranks)
    distances = [1 + (step + lane) % (ranks - 1) for step in range(ranks - 1)]
    for turn, distance in enumerate(distances):
        peers = [(rank + distance) % ranks for rank in range(ranks)]
        if call.operation in (Operation.ALL_REDUCE, Operation.REDUCE_SCATTER):
            for rank, peer in enumerate(peers):
                script.move(turn, rank, peer, [peer], combines=True)
        if call.operation is Operation.ALL_TO_ALL:
            for rank, peer in enumerate(peers):
                script.move(turn, rank, peer, [rank * ranks + peer], combines=False)
        if call.operation in (Operation.ALL_REDUCE, Operation.ALL_GATHER):
            for rank, peer in enumerate(peers):
                script.move(turn + ranks - 1, rank, peer, [rank], combines=False)
        _with_root(script, call, turn, (call.root + distance) % ranks)
    return script.plan()


def _with_root(script: Script, call: Call, turn: int, peer: int) -> None:
    everything = range(call.num_ranks)
    match call.operation:
        case Operation.BROADCAST:
            script.move(turn, call.root, peer, everything, combines=False)
        case Operation.REDUCE:
            script.move(turn, peer, call.root, everything, combines=True)
        case Operation.GATHER:
            script.move(turn, peer, call.root, [peer], combines=False)
        case Operation.SCATTER:
            script.move(turn, call.root, peer, [peer], combines=False)


ALGORITHMS = (Algorithm("direct", frozenset(Operation), plan_direct, preference=6),)
