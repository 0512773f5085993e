"""Worker of a cluster: `python -m storm_py.runtime.cluster_worker SPEC` - launched by a supervisor.

SPEC is the file of `storm_py.worker_spec`. This is the entry only: the fork server is started
before anything else is imported, as it imports much itself and can do so meanwhile. What a worker
does is in `storm_py.runtime.assigned_worker`.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from .programs import start_fork_server


def main() -> None:
    """Entry point."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    fork_server = start_fork_server()
    from .assigned_worker import run

    run(Path(sys.argv[1]), fork_server)


if __name__ == "__main__":
    main()
