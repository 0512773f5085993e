"""What an earlier cluster of this machine has left: workers that still run, and its data.

Workers outlive a cluster that was killed, and the next one takes them over. Who wants no more of
them ends them here, and removes the data as well: what is the cluster's own by its name, and
nothing else. Logs stay, always.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from storm_py.errors import ClusterFailed
from storm_py.supervisor.folders import LocalFolder
from storm_py.supervisor.launcher import Exited, Launcher
from storm_py.supervisor.slot_actions import Severity

from .checks import locked_by_others
from .plan import ClusterPlan

__all__ = ["end_workers", "end_workers_of_others", "remove_data"]

_SUPERVISOR: Final = re.compile(r"supervisor-[1-9][0-9]*")
#: What ZooKeeper stores is in this folder of its own; beside it are settings, log and lock.
_ZOOKEEPER_DATA: Final = "version-2"


def end_workers(folders: Iterable[Path]) -> int:
    """Kill all workers that supervisors of these local folders have left; how many ran."""
    ended = 0
    for path in folders:
        launcher = Launcher(LocalFolder(path))
        try:
            found = launcher.recover()
            ended += sum(recovered.alive for recovered in found)
            left = {recovered.record.worker_id for recovered in found}
            while left:
                # Again and again: what was about to fork when it was looked at is found then.
                for worker_id in left:
                    launcher.end(worker_id, Severity.KILL)
                for event in launcher.poll(0.05):
                    if not isinstance(event, Exited):
                        left.discard(event.worker_id)
        finally:
            launcher.close()
    return ended


def end_workers_of_others(plan: ClusterPlan) -> int:
    """End workers of supervisors that this cluster does not have, as if their machine was gone.

    They were left by a larger cluster that was killed, and nobody would ever end them. How many
    ran.
    """
    others = set(_supervisor_dirs(plan.local_dir)) - set(plan.supervisor_dirs)
    return end_workers(path for path in others if not locked_by_others(_lock(path)))


def remove_data(plan: ClusterPlan) -> None:
    """Begin anew: end what runs of an earlier cluster, and remove what it knew.

    ClusterFailed if a daemon uses any of it, or something cannot be removed.
    """
    supervisors = list(_supervisor_dirs(plan.local_dir))
    locks = [plan.zookeeper_data / "lock", plan.local_dir / "nimbus" / "lock"]
    for lock in [*locks, *map(_lock, supervisors)]:
        if locked_by_others(lock):
            raise ClusterFailed(
                f"--fresh cannot remove {lock.parent}: a daemon that does not belong to a cluster "
                "of one machine uses it; stop that first"
            )
    end_workers(supervisors)
    folders = [plan.zookeeper_data / _ZOOKEEPER_DATA, plan.local_dir / "nimbus"]
    for path in supervisors:
        folders += [LocalFolder(path).local_state.parent, LocalFolder(path).workers]
    for folder in folders:
        try:
            shutil.rmtree(folder)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ClusterFailed(
                f"--fresh cannot remove {error.filename}: {error.strerror}; remove it by hand"
            ) from error


def _lock(supervisor_dir: Path) -> Path:
    state = LocalFolder(supervisor_dir).local_state
    return state.with_name(f"{state.name}.lock")


def _supervisor_dirs(local_dir: Path) -> Iterator[Path]:
    """Those of all supervisors that clusters of here ever had."""
    for path in sorted(local_dir.iterdir()):
        if _SUPERVISOR.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
            yield path
