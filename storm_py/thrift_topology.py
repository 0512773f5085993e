"""A topology as Storm's interface carries it, and back.

`storm_py.bundle` keeps a topology in bytes of its own; between a client and nimbus it travels as
the ``StormTopology`` of ``storm.thrift``, which tools that exist can read and make. Here the one
becomes the other. Nothing is unpickled: what `storm_py.components.pack` made of a component is its
``serialized_java`` and stays closed.

What Thrift has no word for is written as follows. A partial key grouping is a ``custom_object`` of
Storm's class with the names of the fields; a custom grouping is a mark in ``custom_serialized``, as
its object is packed with the component that emits. A global grouping is one by no fields, as in
Storm. The number of tasks is ``topology.tasks`` in the component's configuration. A component that
runs another program (Storm's ``ShellComponent``) is packed as `shell` says.

The order of the components is lost where spouts and bolts alternate: Thrift keeps them apart.
"""

from __future__ import annotations

import json
from typing import Final

from .api.grouping import Grouping, GroupingKind
from .api.spec import ComponentSpec, StormTopology, StreamInfo
from .api.tuples import Fields, GlobalStreamId
from .bundle import StormCode
from .errors import InvalidTopologyException
from .rpc import definitions

__all__ = ["PARTIAL_KEY_GROUPING", "from_thrift", "shell", "to_thrift"]

#: Storm's class for groupings by partial key.
PARTIAL_KEY_GROUPING: Final = "org.apache.storm.grouping.PartialKeyGrouping"

_TASKS: Final = "topology.tasks"
_CUSTOM: Final = b"storm_py custom grouping"
_SHELL: Final = b"storm_py shell\n"
#: What serialized Java objects begin with.
_JAVA_MAGIC: Final = b"\xac\xed"

#: The groupings that are a field of the union and nothing else.
_PLAIN: Final = {
    GroupingKind.SHUFFLE: "shuffle",
    GroupingKind.ALL: "all",
    GroupingKind.NONE: "none",
    GroupingKind.DIRECT: "direct",
    GroupingKind.LOCAL_OR_SHUFFLE: "local_or_shuffle",
}


def shell(execution_command: str, script: str) -> bytes:
    """The packed bytes of a component that is another program, to be run as these two words say."""
    return _SHELL + json.dumps([execution_command, script]).encode()


# ---- to Thrift ---------------------------------------------------------------------------------


def to_thrift(code: StormCode) -> definitions.StormTopology:
    """The topology as it is sent. ValueError if a component has no packed bytes."""
    spouts, bolts = {}, {}
    for spec in code.topology.components.values():
        if spec.id not in code.components:
            raise ValueError(f"{spec.label} is not packed; packed are {sorted(code.components)}")
        made, common = _object(code.components[spec.id]), _common(spec)
        if spec.kind == "spout":
            spouts[spec.id] = definitions.SpoutSpec(spout_object=made, common=common)
        else:
            bolts[spec.id] = definitions.Bolt(bolt_object=made, common=common)
    return definitions.StormTopology(spouts=spouts, bolts=bolts, state_spouts={})


def _object(packed: bytes) -> definitions.ComponentObject:
    if not packed.startswith(_SHELL):
        return definitions.ComponentObject(serialized_java=packed)
    command, script = json.loads(packed[len(_SHELL) :])
    made = definitions.ShellComponent(execution_command=command, script=script)
    return definitions.ComponentObject(shell=made)


def _common(spec: ComponentSpec) -> definitions.ComponentCommon:
    config = dict(spec.config)
    if config.get(_TASKS, spec.parallelism) != spec.num_tasks:
        config[_TASKS] = spec.num_tasks
    return definitions.ComponentCommon(
        inputs={
            definitions.GlobalStreamId(
                componentId=source.component_id, streamId=source.stream_id
            ): _grouping(how)
            for source, how in spec.inputs.items()
        },
        streams={
            id_: definitions.StreamInfo(output_fields=list(info.fields), direct=info.direct)
            for id_, info in spec.streams.items()
        },
        parallelism_hint=spec.parallelism,
        json_conf=json.dumps(config),
    )


def _grouping(grouping: Grouping) -> definitions.Grouping:
    names = list(grouping.fields or ())
    if grouping.kind in _PLAIN:
        found = definitions.Grouping()
        setattr(found, _PLAIN[grouping.kind], definitions.NullStruct())
        return found
    if grouping.kind is GroupingKind.CUSTOM:
        return definitions.Grouping(custom_serialized=_CUSTOM)
    if grouping.kind is GroupingKind.PARTIAL_KEY:
        args = [definitions.JavaObjectArg(string_arg=name) for name in names]
        made = definitions.JavaObject(full_class_name=PARTIAL_KEY_GROUPING, args_list=args)
        return definitions.Grouping(custom_object=made)
    return definitions.Grouping(fields=names)  # by fields; global if there are none


# ---- from Thrift -------------------------------------------------------------------------------


def from_thrift(topology: definitions.StormTopology, where: str) -> StormCode:
    """The topology that was sent; ``where`` begins the messages, e.g. ``topology 'words'``.

    Whether its parts fit together is `storm_py.api.validation`'s to say. Raises
    InvalidTopologyException for what storm_py cannot run: components in Java, state spouts, worker
    hooks, foreign custom groupings, and for a component that makes no sense by itself.
    """
    if topology.state_spouts:
        raise _refused(where, f"has state spouts ({', '.join(topology.state_spouts)})")
    if topology.worker_hooks:
        raise _refused(where, f"has {len(topology.worker_hooks)} worker hooks in Java")
    if twice := sorted(topology.spouts.keys() & topology.bolts.keys()):
        raise InvalidTopologyException(f"{where}: {twice[0]!r} is both a spout and a bolt")
    specs, components = {}, {}
    for id_, spout in topology.spouts.items():
        specs[id_] = _spout(id_, spout, where)
        components[id_] = _packed(spout.spout_object, f"{where}: spout {id_!r}")
    for id_, bolt in topology.bolts.items():
        specs[id_] = _bolt(id_, bolt, where)
        components[id_] = _packed(bolt.bolt_object, f"{where}: bolt {id_!r}")
    return StormCode(StormTopology(specs), components)


def _refused(label: str, what: str) -> InvalidTopologyException:
    return InvalidTopologyException(
        f"{label} {what}, which storm_py cannot run; submit components in Python, or shell "
        "components"
    )


def _spout(id_: str, spout: definitions.SpoutSpec, where: str) -> ComponentSpec:
    if spout.common.inputs:
        raise InvalidTopologyException(f"{where}: spout {id_!r} has inputs; only bolts read")
    return _spec(id_, True, spout.common, f"{where}: spout {id_!r}")


def _bolt(id_: str, bolt: definitions.Bolt, where: str) -> ComponentSpec:
    return _spec(id_, False, bolt.common, f"{where}: bolt {id_!r}")


def _packed(made: definitions.ComponentObject, label: str) -> bytes:
    if made.shell is not None:
        return shell(made.shell.execution_command or "", made.shell.script or "")
    if made.serialized_java is None:
        raise _refused(label, "is to be made from a class in Java")
    if made.serialized_java.startswith(_JAVA_MAGIC):
        raise _refused(label, "is an object in Java")
    return made.serialized_java


def _spec(
    id_: str, is_spout: bool, common: definitions.ComponentCommon, label: str
) -> ComponentSpec:
    config = _config(common.json_conf, label)
    parallelism = 1 if common.parallelism_hint is None else common.parallelism_hint
    num_tasks = config.get(_TASKS, parallelism)
    for what, number in (("parallelism_hint", parallelism), (_TASKS, num_tasks)):
        if type(number) is not int or number < 1:
            raise InvalidTopologyException(
                f"{label} has {what} {number!r}; expected an int of at least 1"
            )
    assert isinstance(num_tasks, int)
    try:
        return ComponentSpec(
            id=id_,
            kind="spout" if is_spout else "bolt",
            component=None,
            parallelism=min(parallelism, num_tasks),
            num_tasks=num_tasks,
            streams={
                stream: StreamInfo(Fields(info.output_fields), info.direct)
                for stream, info in common.streams.items()
            },
            inputs={
                GlobalStreamId(source.componentId, source.streamId): _read_grouping(how, label)
                for source, how in common.inputs.items()
            },
            config=config,
        )
    except ValueError as error:  # a name of a field
        raise InvalidTopologyException(f"{label}: {error}") from error


def _config(json_conf: str | None, label: str) -> dict[str, object]:
    try:
        found = json.loads(json_conf or "{}")
    except ValueError as error:
        raise InvalidTopologyException(f"{label}: its json_conf is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise InvalidTopologyException(
            f"{label}: its json_conf is {json_conf!r:.80}; expected an object"
        )
    return found


def _read_grouping(grouping: definitions.Grouping, label: str) -> Grouping:
    for kind, name in _PLAIN.items():
        if getattr(grouping, name) is not None:
            return Grouping(kind)
    if grouping.fields is not None:
        names = grouping.fields
        return Grouping(GroupingKind.FIELDS, Fields(names)) if names else _GLOBAL
    if grouping.custom_serialized is not None:
        if grouping.custom_serialized != _CUSTOM:
            raise _refused(label, "has a custom grouping in Java")
        return Grouping(GroupingKind.CUSTOM)
    made = grouping.custom_object
    if made is None:
        raise _refused(label, "has a grouping of an unknown kind")
    names = [arg.string_arg for arg in made.args_list if arg.string_arg]
    if made.full_class_name != PARTIAL_KEY_GROUPING or not names:
        raise _refused(label, f"has a grouping by the class {made.full_class_name} in Java")
    return Grouping(GroupingKind.PARTIAL_KEY, Fields(names))


_GLOBAL: Final = Grouping(GroupingKind.GLOBAL)
