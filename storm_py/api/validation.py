"""The checks that a topology passes before it may run; all raise InvalidTopologyException.

Two moments: ``check_component`` when a component is set (its id, its object, its hint), and
``check_topology`` when all are known (whether subscriptions fit declarations). Some of these rules
Storm applies only at submit or at the first emit; here each is an error at build time, worded so
that it names the thing, the value, what was expected and what to do. Nothing here changes a
topology or runs user code, except for the two declaring hooks of a component.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Literal

from storm_py.constants import RESERVED_PREFIX
from storm_py.errors import InvalidTopologyException, a_type, did_you_mean, nearest

from .component import BaseBasicBolt, BaseRichBolt, BaseRichSpout, BatchBolt
from .declarers import (
    ComponentDraft,
    OutputFieldsDeclarer,
    component_config,
    is_positive_int,
)
from .grouping import CustomStreamGrouping, Grouping, GroupingKind
from .spec import ComponentSpec, StormTopology, StreamInfo
from .tuples import GlobalStreamId

__all__ = [
    "check_component",
    "check_kind",
    "check_topology",
    "component_configuration",
    "declared_streams",
]

_BASES: Mapping[str, tuple[type, ...]] = {
    "spout": (BaseRichSpout,),
    "bolt": (BaseRichBolt, BaseBasicBolt, BatchBolt),
}
_REQUIRED: Mapping[type, str] = {
    BaseRichSpout: "next_tuple",
    BaseRichBolt: "execute",
    BaseBasicBolt: "execute",
    BatchBolt: "execute_batch",
    CustomStreamGrouping: "choose_tasks",
}
#: What the values of `BatchBolt.columns` need.
_PACKAGES: Mapping[object, str] = {"arrow": "pyarrow", "numpy": "numpy"}


def check_component(
    kind: Literal["spout", "bolt"],
    id: object,
    component: object,
    parallelism_hint: object,
    taken: Mapping[str, ComponentDraft],
) -> None:
    """Check one component on its own, as far as that is possible when it is set."""
    _check_id(kind, id, taken)
    base = check_kind(kind, component, "set", f"({id!r})")
    _check_hooks(f"{kind} {id!r}", base, component)
    if isinstance(component, BatchBolt):
        _check_batch_bolt(f"{kind} {id!r}", component)
    if not is_positive_int(parallelism_hint):
        raise InvalidTopologyException(
            f"{kind} {id!r} has parallelism_hint {parallelism_hint!r}; "
            "the number of executors is an int of at least 1"
        )


def _check_id(kind: str, id: object, taken: Mapping[str, ComponentDraft]) -> None:
    if not isinstance(id, str):
        raise InvalidTopologyException(
            f"set_{kind} got {id!r} as id; component ids are str, and come before the object"
        )
    if not id:
        raise InvalidTopologyException(f"set_{kind} got an empty id; name the {kind}")
    if id.startswith(RESERVED_PREFIX):
        raise InvalidTopologyException(
            f"{kind} id {id!r} begins with {RESERVED_PREFIX!r}, which is kept for the system; "
            "choose another id"
        )
    if id in taken:
        raise InvalidTopologyException(
            f"component id {id!r} is already taken by a {taken[id].kind}, a "
            f"{type(taken[id].component).__name__}; ids are unique over spouts and bolts"
        )


def check_kind(
    kind: Literal["spout", "bolt"], component: object, verb: str, args: str = ""
) -> type:
    """Return the base class of a component, which must be of this kind.

    Users called `set_spout` or `for_bolt`, of which ``verb`` is the first half, with ``args``.
    """
    call = f"{verb}_{kind}{args}"
    if isinstance(component, type):
        raise InvalidTopologyException(
            f"{call} got the class {component.__name__}; pass an instance: {component.__name__}()"
        )
    other: Literal["spout", "bolt"] = "bolt" if kind == "spout" else "spout"
    if isinstance(component, _BASES[other]) and not isinstance(component, _BASES[kind]):
        raise InvalidTopologyException(
            f"{call} got {a_type(component)}, which is a {other}; use {verb}_{other}"
        )
    for base in _BASES[kind]:
        if isinstance(component, base):
            return base
    *others, last = (base.__name__ for base in _BASES[kind])
    expected = " or ".join(filter(None, [", ".join(others), last]))
    raise InvalidTopologyException(
        f"{call} got {a_type(component)}; expected an instance of a class derived from {expected}"
    )


def _check_batch_bolt(label: str, bolt: BatchBolt) -> None:
    if not isinstance(bolt.auto_ack, bool):
        raise InvalidTopologyException(
            f"{label}: auto_ack is {bolt.auto_ack!r}; expected True or False"
        )
    columns: object = bolt.columns
    if columns is not None and columns not in tuple(_PACKAGES):
        raise InvalidTopologyException(
            f"{label}: columns is {columns!r}; expected None for rows, 'arrow' or 'numpy'"
        )
    package = _PACKAGES.get(columns)
    if package is not None and find_spec(package) is None:
        raise InvalidTopologyException(
            f"{label}: columns is {columns!r}, which needs the package {package}, and that is not "
            f"installed; pip install 'storm-py[{columns}]'"
        )


def _check_hooks(label: str, base: type, component: object) -> None:
    """Check the methods that an object of the user's defines of those that ``base`` has."""
    _check_required(label, base, component)
    for name, hook in vars(base).items():
        if inspect.isfunction(hook) and not name.startswith("_"):
            _check_hook(label, component, name, hook)


def _check_required(label: str, base: type, component: object) -> None:
    name = _REQUIRED[base]
    method = getattr(component, name)
    if getattr(method, "__func__", method) is not getattr(base, name):
        return
    own = [attr for attr in dir(component) if not hasattr(base, attr)]
    near = nearest(name, own)
    params = ", ".join(inspect.signature(getattr(base, name)).parameters)
    raise InvalidTopologyException(
        f"{label}: class {type(component).__name__} does not define {name}({params})"
        f"{f'; is it what {near!r} was meant to be?' if near else ''}"
    )


def _check_hook(label: str, component: object, name: str, hook: Callable[..., object]) -> None:
    """Refuse a hook that could not be called, or whose body would silently never run."""
    method = getattr(component, name)
    owner = f"{label}: {type(component).__name__}.{name}"
    if not callable(method):
        raise InvalidTopologyException(
            f"{owner} is {a_type(method)}; it hides the method of that name, rename it"
        )
    if inspect.iscoroutinefunction(method):
        raise InvalidTopologyException(f"{owner} is async; define it with a plain def")
    if inspect.isgeneratorfunction(method) or inspect.isasyncgenfunction(method):
        raise InvalidTopologyException(
            f"{owner} contains yield, so calling it would run nothing; emit on the collector"
        )
    names = list(inspect.signature(hook).parameters)[1:]
    try:
        signature = inspect.signature(method)
    except (TypeError, ValueError):  # some callables written in C do not tell
        return
    try:
        signature.bind(*names)
    except TypeError:
        raise InvalidTopologyException(
            f"{owner}{_bare(signature)} cannot be called as {name}({', '.join(names)}); "
            "give it exactly these parameters, after self"
        ) from None


def _bare(signature: inspect.Signature) -> inspect.Signature:
    """Return the signature without annotations, which only make a message longer."""
    empty = inspect.Parameter.empty
    bare = [param.replace(annotation=empty) for param in signature.parameters.values()]
    return signature.replace(parameters=bare, return_annotation=inspect.Signature.empty)


def declared_streams(draft: ComponentDraft) -> Mapping[str, StreamInfo]:
    """Let the component declare its output streams and return them by id."""
    declarer = OutputFieldsDeclarer(draft.label)
    returned = _call_hook(draft, "declare_output_fields", declarer)
    if returned is not None:
        raise InvalidTopologyException(
            f"{draft.label}: declare_output_fields returned {a_type(returned)}; "
            "it returns None, call declarer.declare(...) instead"
        )
    return declarer.streams


def component_configuration(draft: ComponentDraft) -> dict[str, object]:
    """Return the checked configuration that the component brings along, empty if none."""
    returned = _call_hook(draft, "get_component_configuration")
    label = f"{draft.label}, get_component_configuration"
    return {} if returned is None else component_config(label, returned)


def _call_hook(draft: ComponentDraft, name: str, *args: object) -> object:
    try:
        returned: object = getattr(draft.component, name)(*args)
    except InvalidTopologyException:
        raise
    except Exception as error:
        raise InvalidTopologyException(
            f"{draft.label}: {name} of {type(draft.component).__name__} raised "
            f"{type(error).__name__}: {error}{_place(error)}"
        ) from error
    return returned


def _place(error: Exception) -> str:
    """Say in which line of the hook itself ``error`` arose, if it got that far."""
    own = error.__traceback__ and error.__traceback__.tb_next
    return f" ({own.tb_frame.f_code.co_filename}, line {own.tb_lineno})" if own else ""


def check_topology(
    topology: StormTopology, places: Mapping[str, Mapping[GlobalStreamId, str]]
) -> None:
    """Check that the components of a topology fit together.

    ``places`` says, by bolt and input, where in the user's code the bolt was subscribed.
    """
    if not topology.components:
        raise InvalidTopologyException(
            "the topology is empty; add components with set_spout and set_bolt"
        )
    if not topology.spouts:
        raise InvalidTopologyException(
            f"the topology has no spout, only {', '.join(topology.components)}; "
            "add a source of tuples with set_spout"
        )
    for spec in topology.components.values():
        if spec.kind == "bolt" and not spec.inputs:
            raise InvalidTopologyException(
                f"{spec.label} has no input; subscribe it to a stream, as in "
                f"set_bolt({spec.id!r}, ...).shuffle_grouping({_first_spout(topology)!r})"
            )
        for source, grouping in spec.inputs.items():
            try:
                _check_input(topology, spec, source, grouping)
            except InvalidTopologyException as error:
                raise InvalidTopologyException(f"{error} ({places[spec.id][source]})") from None


def _check_input(
    topology: StormTopology, spec: ComponentSpec, source: GlobalStreamId, grouping: Grouping
) -> None:
    producer = topology.components.get(source.component_id)
    if producer is None:
        others = [id_ for id_ in topology.components if id_ != spec.id]
        raise InvalidTopologyException(
            f"{spec.label} subscribes to {source.component_id!r}, which is no component of this "
            f"topology; it has: {', '.join(others)}{did_you_mean(source.component_id, others)}"
        )
    info = producer.streams.get(source.stream_id)
    if info is None:
        raise InvalidTopologyException(_unknown_stream(spec, producer, source))
    where = f"{spec.label} subscribes to stream {source.stream_id!r} of {source.component_id!r}"
    for name in grouping.fields or ():
        if name not in info.fields:
            raise InvalidTopologyException(
                f"{where} by field {name!r}, which it does not have; declared fields: "
                f"{', '.join(info.fields) or 'none'}{did_you_mean(name, info.fields)}"
            )
    _check_direct(where, info.direct, grouping)
    if grouping.custom is not None:
        _check_hooks(
            f"{spec.label}, custom grouping on {source.component_id!r}",
            CustomStreamGrouping,
            grouping.custom,
        )


def _unknown_stream(spec: ComponentSpec, producer: ComponentSpec, source: GlobalStreamId) -> str:
    start = f"{spec.label} subscribes to stream {source.stream_id!r} of {producer.id!r}, which"
    if not producer.streams:
        return f"{start} declares no streams; declare it in its declare_output_fields"
    hint = did_you_mean(source.stream_id, producer.streams)
    if any(source.stream_id in info.fields for info in producer.streams.values()):
        hint = f"; {source.stream_id!r} is one of its fields: give several fields as one list"
    return f"{start} declares only: {', '.join(producer.streams)}{hint}"


def _check_direct(where: str, direct: bool, grouping: Grouping) -> None:
    if grouping.kind is GroupingKind.DIRECT and not direct:
        raise InvalidTopologyException(
            f"{where} by direct grouping, but the stream is not direct; declare it with "
            "direct=True or choose another grouping"
        )
    if grouping.kind is not GroupingKind.DIRECT and direct:
        raise InvalidTopologyException(
            f"{where} by {grouping} grouping, but the stream is direct; use direct_grouping or "
            "declare it without direct=True"
        )


def _first_spout(topology: StormTopology) -> str:
    return next(iter(topology.spouts))
