"""NimbusHandler: all calls of Storm's nimbus, put together of their three kinds.

What it serves is `storm_py.rpc.interface.Nimbus`; the server that calls it is
`storm_py.rpc.server.ThriftServer`, from several threads at once.
"""

from __future__ import annotations

from collections.abc import Callable

from .commands import Commands, Leadership
from .data import NimbusData
from .pages import Pages
from .transfers import Transfers

__all__ = ["NimbusHandler"]


class NimbusHandler(Commands, Transfers, Pages):
    """A nimbus, as its clients see it."""

    def __init__(
        self,
        data: NimbusData,
        leadership: Leadership,
        complaint: Callable[[str], str | None] = lambda topology_id: None,
    ) -> None:
        """`complaint` says what a topology lacked when slots were given out last."""
        Commands.__init__(self, data, leadership)
        Pages.__init__(self, data, complaint)
