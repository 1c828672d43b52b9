"""Names of messages between PEs (``kernbench.common.ipcq_types``)."""

from tilewright.interop.kernbench.language.handle import RecvFuture
from tilewright.interop.kernbench.pe_command import PeCommand

__all__ = ("IpcqDmaToken", "IpcqInitMsg", "IpcqRecvCmd", "IpcqSendCmd", "RecvFuture")


class IpcqSendCmd(PeCommand):
    """The command of ``tl.send``."""

    instead = "tl.send(dir, src=handle)"


class IpcqRecvCmd(PeCommand):
    """The command of ``tl.recv``."""

    instead = "tl.recv(dir, shape, dtype)"


class IpcqInitMsg(PeCommand):
    """The message that ``install_ipcq`` sends to the PEs."""

    instead = "tl.send and tl.recv behind torch.install_ipcq(...)"


class IpcqDmaToken(PeCommand):
    """A packet with a message and the notification of its arrival."""

    instead = "tl.send(dir, src=handle)"
