"""Names of topologies for shells that complete a command line.

They come from nimbus, which gets a moment: a shell that waits, or that shows an error in the middle
of a line, is worse than one that completes nothing. To have it in bash:
``eval "$(_STORM_PY_COMPLETE=bash_source storm-py)"``; zsh and fish go by ``zsh_source`` and
``fish_source``.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping
from typing import Final

from storm_py.config import Config, configuration

from .settings import home

__all__ = ["topology_names"]

#: How long a shell waits; a nimbus on this machine takes a few milliseconds.
PATIENCE_SECS: Final = 1.0


def topology_names(config: str | None, settings: Mapping[str, object]) -> list[str]:
    """The names of all topologies that run; none if they cannot be had at once."""
    names: list[str] = []

    def ask() -> None:
        with contextlib.suppress(Exception):  # whatever it is, it is no matter for a shell
            names.extend(_asked(config, settings))

    # A thread, as looking up the name of a host knows no timeout.
    thread = threading.Thread(target=ask, name="completion", daemon=True)
    thread.start()
    thread.join(PATIENCE_SECS)
    return [] if thread.is_alive() else sorted(names)


def _asked(config: str | None, settings: Mapping[str, object]) -> list[str]:
    from storm_py.client import NimbusClient
    from storm_py.rpc.client import Patience
    from storm_py.storm_yaml import find, load

    conf = configuration(None, settings, load(find(config, os.environ, home())).values)
    port = conf[Config.NIMBUS_THRIFT_PORT]
    hosts = conf[Config.NIMBUS_SEEDS]
    assert isinstance(port, int)
    assert isinstance(hosts, list)  # the configuration is valid
    patience = Patience(connect_secs=PATIENCE_SECS, attempts=1, answer_secs=PATIENCE_SECS)
    with NimbusClient([(host, port) for host in hosts], patience, leader_secs=0) as client:
        return [summary.name for summary in client.nimbus.getTopologySummaries()]
