"""The objects on which user code declares streams, subscriptions and per-component settings.

They mirror Storm's ``OutputFieldsDeclarer``, ``SpoutDeclarer`` and ``BoltDeclarer``. Each records
what it is told into a draft and refuses at the call what is wrong in itself; whether the parts fit
together is checked by ``storm_py.api.validation`` once all of them are known. Only
``storm_py.api.topology`` makes these objects.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self

from storm_py import config
from storm_py.constants import DEFAULT_STREAM_ID, RESERVED_PREFIX
from storm_py.errors import ConfigError, InvalidTopologyException, a_type

from .grouping import KEYED, CustomStreamGrouping, Grouping, GroupingKind
from .spec import StreamInfo
from .tuples import Fields, GlobalStreamId

__all__ = [
    "BoltDeclarer",
    "ComponentDeclarer",
    "ComponentDraft",
    "OutputFieldsDeclarer",
    "SpoutDeclarer",
]

_OURS = ("storm_py.api.", "storm_py.testing.")
_TOPOLOGY_WIDE = {config.Config.STORM_PY_SERIALIZERS, config.Config.STORM_PY_FALL_BACK_ON_PICKLE}


@dataclass(slots=True)
class ComponentDraft:
    """What the builder knows so far about one component; becomes a ``ComponentSpec``."""

    id: str
    kind: Literal["spout", "bolt"]
    component: object
    parallelism_hint: int
    inputs: dict[GlobalStreamId, Grouping] = field(default_factory=dict)
    config: dict[str, object] = field(default_factory=dict)
    #: Where in the user's code each input was subscribed to.
    places: dict[GlobalStreamId, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Kind and id as every message writes them, e.g. ``bolt 'count'``."""
        return f"{self.kind} {self.id!r}"


class OutputFieldsDeclarer:
    """Takes the output streams of one component, in its ``declare_output_fields``."""

    __slots__ = ("_label", "_streams")

    def __init__(self, label: str) -> None:
        """Start without streams; ``label`` names the component in messages."""
        self._label = label
        self._streams: dict[str, StreamInfo] = {}

    @property
    def streams(self) -> Mapping[str, StreamInfo]:
        """What was declared so far, by stream id."""
        return dict(self._streams)

    def declare(self, *fields: str | Iterable[str], direct: bool = False) -> None:
        """Declare the fields of the default stream: ``declare("word", "count")``.

        A ``Fields`` or a list works too. Raises as ``declare_stream``.
        """
        self.declare_stream(DEFAULT_STREAM_ID, *fields, direct=direct)

    def declare_stream(
        self, stream_id: str, *fields: str | Iterable[str], direct: bool = False
    ) -> None:
        """Declare the fields of the stream ``stream_id``, one by one or as one list or ``Fields``.

        On a ``direct`` stream the component names the receiving task of every tuple. Raises
        InvalidTopologyException for a reserved or repeated id and for bad field names.
        """
        check_stream_id(self._label, stream_id)
        if stream_id in self._streams:
            raise InvalidTopologyException(
                f"{self._label} declares stream {stream_id!r} twice; declare each stream once, "
                "with all of its fields"
            )
        if not isinstance(direct, bool):
            raise InvalidTopologyException(
                f"{self._label} declares stream {stream_id!r} with direct={direct!r}; "
                "expected True or False"
            )
        info = StreamInfo(parse_fields(f"{self._label}, stream {stream_id!r}", *fields), direct)
        self._streams[stream_id] = info


class ComponentDeclarer:
    """Settings that spouts and bolts share; every method returns the declarer, for chaining.

    What is set here overrides the component's ``get_component_configuration``, which overrides the
    topology's configuration.
    """

    __slots__ = ("_draft",)

    def __init__(self, draft: ComponentDraft) -> None:
        """Record into ``draft``."""
        self._draft = draft

    def add_configuration(self, key: str, value: object) -> Self:
        """Set one configuration key for this component only.

        Raises InvalidTopologyException for an unknown or mistyped key and for a bad value.
        """
        return self.add_configurations({key: value})

    def add_configurations(self, conf: Mapping[str, object]) -> Self:
        """Set several configuration keys; raises as ``add_configuration``."""
        self._draft.config.update(component_config(self._draft.label, conf))
        return self

    def set_num_tasks(self, num_tasks: int) -> Self:
        """Fix the number of tasks, by default the parallelism hint (``topology.tasks``)."""
        if not is_positive_int(num_tasks):
            raise InvalidTopologyException(
                f"{self._draft.label}: set_num_tasks got {num_tasks!r}; "
                "the number of tasks is an int of at least 1"
            )
        return self.add_configuration(config.Config.TOPOLOGY_TASKS, num_tasks)

    def set_max_task_parallelism(self, limit: int) -> Self:
        """Cap the number of tasks and executors (``topology.max.task.parallelism``)."""
        return self.add_configuration(config.Config.TOPOLOGY_MAX_TASK_PARALLELISM, limit)

    def set_debug(self, debug: bool) -> Self:
        """Log every tuple that this component emits (``topology.debug``)."""
        return self.add_configuration(config.Config.TOPOLOGY_DEBUG, debug)

    def set_max_spout_pending(self, limit: int) -> Self:
        """Limit the unfinished tuples of each spout task (``topology.max.spout.pending``)."""
        return self.add_configuration(config.Config.TOPOLOGY_MAX_SPOUT_PENDING, limit)


class SpoutDeclarer(ComponentDeclarer):
    """What ``set_spout`` returns: settings of one spout. A spout has no inputs."""

    __slots__ = ()


class BoltDeclarer(ComponentDeclarer):
    """What ``set_bolt`` returns: subscriptions and settings of one bolt.

    Each grouping method subscribes the bolt to one stream of one component, which may be set on
    the builder later. Subscribing to a stream a second time raises InvalidTopologyException.
    """

    __slots__ = ()

    def shuffle_grouping(self, component_id: str, stream_id: str = DEFAULT_STREAM_ID) -> Self:
        """Spread the tuples evenly over this bolt's tasks."""
        return self._subscribe(component_id, stream_id, Grouping(GroupingKind.SHUFFLE))

    def fields_grouping(
        self,
        component_id: str,
        fields: str | Iterable[str],
        stream_id: str = DEFAULT_STREAM_ID,
    ) -> Self:
        """Send tuples with equal values of ``fields`` to the same task.

        ``fields`` is one name, a list of names or a ``Fields``.
        """
        return self._subscribe_by_key(GroupingKind.FIELDS, component_id, fields, stream_id)

    def partial_key_grouping(
        self,
        component_id: str,
        fields: str | Iterable[str],
        stream_id: str = DEFAULT_STREAM_ID,
    ) -> Self:
        """Send tuples with equal values of ``fields`` to two tasks, evening out frequent keys.

        Every emitting task sends each tuple to that one of its key's two tasks which it has sent
        fewer tuples to; so what is counted per key must be added up once more behind this bolt.
        """
        return self._subscribe_by_key(GroupingKind.PARTIAL_KEY, component_id, fields, stream_id)

    def all_grouping(self, component_id: str, stream_id: str = DEFAULT_STREAM_ID) -> Self:
        """Send every tuple to every task of this bolt."""
        return self._subscribe(component_id, stream_id, Grouping(GroupingKind.ALL))

    def global_grouping(self, component_id: str, stream_id: str = DEFAULT_STREAM_ID) -> Self:
        """Send every tuple to the one task of this bolt with the lowest id."""
        return self._subscribe(component_id, stream_id, Grouping(GroupingKind.GLOBAL))

    def direct_grouping(self, component_id: str, stream_id: str = DEFAULT_STREAM_ID) -> Self:
        """Let the producer pick the task, with ``emit_direct`` on a stream declared direct."""
        return self._subscribe(component_id, stream_id, Grouping(GroupingKind.DIRECT))

    def local_or_shuffle_grouping(
        self, component_id: str, stream_id: str = DEFAULT_STREAM_ID
    ) -> Self:
        """Spread tuples evenly over this bolt's tasks in the emitter's worker, or over all.

        Over all where that worker runs none of them.
        """
        return self._subscribe(component_id, stream_id, Grouping(GroupingKind.LOCAL_OR_SHUFFLE))

    def none_grouping(self, component_id: str, stream_id: str = DEFAULT_STREAM_ID) -> Self:
        """Say that it does not matter which task gets a tuple; the same as ``shuffle_grouping``."""
        return self._subscribe(component_id, stream_id, Grouping(GroupingKind.NONE))

    def custom_grouping(
        self,
        component_id: str,
        grouping: CustomStreamGrouping,
        stream_id: str = DEFAULT_STREAM_ID,
    ) -> Self:
        """Let an object of your own choose the tasks of every tuple."""
        how = Grouping(GroupingKind.CUSTOM, custom=grouping)
        return self._subscribe(component_id, stream_id, how)

    def grouping(self, stream: GlobalStreamId, grouping: Grouping) -> Self:
        """Subscribe by a ``Grouping`` made elsewhere, as code that generates topologies does."""
        if not isinstance(stream, GlobalStreamId):
            raise InvalidTopologyException(
                f"{self._draft.label}: grouping got {a_type(stream)} to subscribe to; expected "
                'GlobalStreamId("component", "stream")'
            )
        if not isinstance(grouping, Grouping):
            raise InvalidTopologyException(
                f"{self._draft.label}: grouping on {stream.component_id!r} got {a_type(grouping)}; "
                "expected a Grouping, as in Grouping(GroupingKind.SHUFFLE)"
            )
        if grouping.kind in KEYED and grouping.fields is not None:
            return self._subscribe_by_key(
                grouping.kind, stream.component_id, grouping.fields, stream.stream_id
            )
        return self._subscribe(stream.component_id, stream.stream_id, grouping)

    def _subscribe_by_key(
        self, kind: GroupingKind, component_id: str, fields: str | Iterable[str], stream_id: str
    ) -> Self:
        what = f"{kind.words} grouping on {component_id!r}"
        key = parse_fields(f"{self._draft.label}, {what}", fields)
        if not key:
            raise InvalidTopologyException(
                f"{self._draft.label}: {what} names no field; "
                "name the fields that make the key, or use global_grouping for a single task"
            )
        return self._subscribe(component_id, stream_id, Grouping(kind, key))

    def _subscribe(self, component_id: str, stream_id: str, grouping: Grouping) -> Self:
        for what, value in (("component", component_id), ("stream", stream_id)):
            if not isinstance(value, str):
                raise InvalidTopologyException(
                    f"{self._draft.label}: {what} to subscribe to is {a_type(value)}; "
                    f"expected the {what}'s id, a str"
                )
        check_grouping(f"{self._draft.label}, grouping on {component_id!r}", grouping)
        source = GlobalStreamId(component_id, stream_id)
        if source in self._draft.inputs:
            raise InvalidTopologyException(
                f"{self._draft.label} subscribes twice to stream {stream_id!r} of "
                f"{component_id!r}, by {self._draft.inputs[source]} and {grouping}; keep one"
            )
        self._draft.inputs[source] = grouping
        self._draft.places[source] = _users_line()
        return self


def _users_line() -> str:
    """File and line of the call that led here, as ``flow.py, line 12``."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}, line {frame.f_lineno}"


def is_positive_int(value: object) -> bool:
    """Say whether ``value`` is an int of at least 1; bools are not ints here."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def check_stream_id(label: str, stream_id: object) -> None:
    """Raise InvalidTopologyException unless ``stream_id`` may name a user's stream."""
    if not isinstance(stream_id, str) or not stream_id:
        raise InvalidTopologyException(
            f"{label} declares a stream with id {stream_id!r}; stream ids are non-empty str"
        )
    if stream_id.startswith(RESERVED_PREFIX):
        raise InvalidTopologyException(
            f"{label} declares stream {stream_id!r}; ids that begin with {RESERVED_PREFIX!r} "
            "belong to the system, choose another"
        )


def parse_fields(where: str, *fields: str | Iterable[str]) -> Fields:
    """Return ``Fields(*fields)``, its errors reworded to InvalidTopologyException at ``where``."""
    try:
        return Fields(*fields)
    except (TypeError, ValueError) as error:
        raise InvalidTopologyException(f"{where}: {error}") from error


def check_grouping(where: str, grouping: Grouping) -> None:
    """Raise InvalidTopologyException unless the grouping has what its kind needs, and only that."""
    kind, custom = grouping.kind, grouping.custom
    if not isinstance(kind, GroupingKind):
        raise InvalidTopologyException(
            f"{where}: {kind!r} is no kind of grouping; expected a GroupingKind: "
            f"{', '.join(GroupingKind)}"
        )
    if (grouping.fields is not None) != (kind in KEYED):
        rule = "needs the fields of its key" if kind in KEYED else "has no fields"
        raise InvalidTopologyException(f"{where}: a grouping of the kind {kind} {rule}")
    if kind is not GroupingKind.CUSTOM:
        if custom is not None:
            raise InvalidTopologyException(
                f"{where}: a grouping of the kind {kind} has no object, it got {a_type(custom)}; "
                "custom_grouping takes one"
            )
    elif isinstance(custom, type):
        raise InvalidTopologyException(
            f"{where}: custom grouping got the class {custom.__name__}; pass an instance: "
            f"{custom.__name__}()"
        )
    elif not isinstance(custom, CustomStreamGrouping):
        raise InvalidTopologyException(
            f"{where}: custom grouping got {a_type(custom)}; expected an instance of a class "
            "derived from CustomStreamGrouping"
        )


def checked_config(label: str, conf: object) -> dict[str, object]:
    """Return a copy of a configuration; InvalidTopologyException if it is not valid."""
    if not isinstance(conf, Mapping):
        raise InvalidTopologyException(
            f"{label}: configuration is {a_type(conf)}; expected a dict of key to value"
        )
    try:
        config.validate(conf)
    except ConfigError as error:
        raise InvalidTopologyException(f"{label}: {error}") from error
    for key, value in conf.items():
        try:
            json.dumps(value)  # as it travels to the processes that run the component
        except (TypeError, ValueError) as error:
            raise InvalidTopologyException(
                f"{label}: {key} is {value!r}; expected a value that JSON knows ({error})"
            ) from error
    return dict(conf)


def component_config(label: str, conf: object) -> dict[str, object]:
    """The same for one component, which may not set what all components have to agree on."""
    checked = checked_config(label, conf)
    for key in sorted(_TOPOLOGY_WIDE.intersection(checked)):
        raise InvalidTopologyException(
            f"{label}: {key} cannot be set for one component, since all that exchange tuples have "
            "to agree on it; set it for the topology"
        )
    return checked
