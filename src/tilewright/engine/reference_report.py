"""What the reference core says about its state: counters, broken rules, who waits for what."""

from array import array

import numpy as np

from tilewright.engine.core import UNBOUNDED
from tilewright.engine.reference_state import Route, Server, Signal, Task

__all__ = ("first_violation", "server_counters", "tamper", "waiting_packets", "waiting_tasks")

Violation = tuple[str, int, int, int]  # rule, server or route, found, expected


def server_counters(server: Server, now_ps: int) -> tuple[int, int, int, int, int, int, int, int]:
    """The fields of ServerCounters, with the queue counted up to now."""
    server.count_waits(now_ps)
    server.note_queue(now_ps, 0)
    held_ps = server.busy_ps + server.stretch_ps
    return (
        server.packets, server.num_bytes, server.busy_ps, held_ps, server.wait_ps,
        server.queue_ps, server.max_queue, server.free_ps,
    )  # fmt: skip


def first_violation(
    servers: list[Server], routes: list[Route], hops: "array[int]"
) -> Violation | None:
    """The rules of section 6, for a drained core; ``hops`` are all routes' servers in a row."""
    for index, route in enumerate(routes):
        if route.packets_in != route.packets_out:
            return "route packets", index, route.packets_out, route.packets_in
        if route.bytes_in != route.bytes_out:
            return "route bytes", index, route.bytes_out, route.bytes_in
    routed = np.zeros(len(servers), np.int64)
    lengths = np.array([len(route.servers) for route in routes], np.int64)
    bytes_out = np.array([route.bytes_out for route in routes], np.int64)
    np.add.at(routed, np.array(hops), np.repeat(bytes_out, lengths))
    for server, routed_bytes in zip(servers, routed.tolist(), strict=True):
        violation = _server_violation(server, routed_bytes)
        if violation is not None:
            return violation
    return None


def _server_violation(server: Server, routed_bytes: int) -> Violation | None:
    counters = server_counters(server, server.free_ps)
    _, num_bytes, busy_ps, held_ps, wait_ps, queue_ps, _, free_ps = counters
    if num_bytes != routed_bytes:
        return "server bytes", server.index, num_bytes, routed_bytes
    if busy_ps > held_ps:
        return "busy time", server.index, busy_ps, held_ps
    if held_ps > free_ps:
        return "utilisation", server.index, held_ps, free_ps
    if wait_ps < 0:
        return "waiting time", server.index, wait_ps, 0
    if wait_ps != queue_ps:
        return "queue integral", server.index, queue_ps, wait_ps
    for _, credits in sorted(server.credits.items()):
        if server.buffer_flits != UNBOUNDED and credits != server.buffer_flits:
            return "credits", server.index, credits, server.buffer_flits
    return None


def tamper(server: Server, counter: str, amount: int) -> None:
    """Break one counter; ``credits`` stands for the first channel's."""
    if counter == "credits":
        server.credits[min(server.credits)] += amount
    else:
        setattr(server, counter, getattr(server, counter) + amount)


def waiting_tasks(
    live: dict[int, Task], signals: list[Signal]
) -> list[tuple[int, int, list[int], list[tuple[int, int, int]], list[int]]]:
    """The fields of WaitingTask, in the order of ids."""
    earlier: dict[int, list[int]] = {}
    for task_id, task in sorted(live.items()):
        for follower in task.followers or ():
            earlier.setdefault(follower.id, []).append(task_id)
    rows = []
    for task_id, task in sorted(live.items()):
        definition = task.definition
        siblings = [task.siblings[index].id for index in definition.afters]
        afters = [sibling for sibling in siblings if sibling in live]
        waits = [
            (signal, signals[signal].value, value)
            for signal, value in definition.waits
            if signals[signal].value < value
        ]
        raises = [signal for signal, _ in definition.raises]
        afters += earlier.get(task_id, [])
        rows.append((task_id, task.packets_left, afters, waits, raises))
    return rows


def waiting_packets(
    servers: list[Server],
) -> list[tuple[int, int, int, int, int, int, int, bool]]:
    """The fields of WaitingPacket, by server, slot and place in the queue."""
    rows = []
    for server in servers:
        for slot in server.slots:
            for _, packet_id, packet in sorted(server.queues[slot].waiting, key=lambda w: w[:2]):
                source, waits_in = packet.queue_key
                wants = packet.route.channels[packet.hop]
                last_hop = packet.hop + 1 == len(packet.route.servers)
                row = (packet_id, packet.task.id, server.index, source, waits_in, wants)
                rows.append((*row, packet.flits, last_hop))
    return rows
