"""What a process that `storm_py.runtime.fork_server` has forked does to become an instance.

It puts the user's code on its path, serves until the end, and tells the worker of whatever ends it
before. All that is between its sockets is in `storm_py.runtime.instance`.
"""

from __future__ import annotations

import importlib
import logging
import sys
from pathlib import Path

import zmq

from storm_py.engine.tasks import UserError
from storm_py.transport.zeromq import ChannelClient
from storm_py.wire import control

from .folder import RunFolder
from .instance import Instance
from .instance_spec import InstanceSpec
from .logs import RecordQueue, set_up_logging

_LOG = logging.getLogger("storm_py.instance")


def run_instance(spec: InstanceSpec) -> int:
    """Become the instance; returns the exit code."""
    folder = RunFolder(Path(spec.folder))
    user = folder.read_user()
    sys.path.insert(0, user.sys_path)
    plan = folder.read_plan(spec.plan_version)
    records = RecordQueue(plan.label(spec.instance))
    set_up_logging(records, None if spec.log is None else Path(spec.log))
    address = folder.worker_address(spec.worker, spec.worker_incarnation)
    channel = ChannelClient(zmq.Context.instance(), address, f"i{spec.instance}.{spec.incarnation}")
    code = 1
    try:
        importlib.import_module(user.module)
        instance = Instance(spec, folder, plan, channel, records)
        try:
            instance.run()
            code = 0
        except UserError as error:
            instance.give_up(error)
    except Exception as error:  # noqa: BLE001 - the boundary of the process: told, then it ends
        _LOG.exception("instance %d failed", spec.instance)
        first = plan.executor(spec.instance)
        failure = UserError(first.component_id, first.tasks[0], "start", error)
        channel.send(control.encode(failure.report(fatal=True)))
    for record in records.take():
        channel.send(control.encode(record))
    channel.close(linger_secs=2.0)
    zmq.Context.instance().destroy(linger=None)
    return code
