"""What Vortex users ask about a GPU; this side of tilewright never runs on one."""


def is_hopper(_device: object = None) -> bool:
    """Whether flows run on a Hopper GPU: never, they run on described machines and CPUs."""
    return False


def is_hopper_or_newer(_device: object = None) -> bool:
    return False
