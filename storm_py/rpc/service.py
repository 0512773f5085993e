"""The IDL, read once: its structs as classes, its calls as `Method`, its exceptions as errors.

thriftpy2 parses ``storm.thrift`` when this module is imported, which takes some tenths of a second:
so nobody imports this package who does not speak Thrift. It is parsed under a name of our own, as
thriftpy2 keeps what it has parsed by name and streamparse, in the same process, has a
``storm_thrift`` too; and once for all threads, as thriftpy2 would make classes anew for each.

Users of the structs import them, typed, from `storm_py.rpc.definitions` and
`storm_py.rpc.summaries`. Whoever handles or makes calls raises and catches the exceptions of
`storm_py.errors`: those of the IDL, which have the same names, exist between the two ends only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import thriftpy2
from thriftpy2.thrift import TApplicationException, TType

from storm_py import errors
from storm_py.errors import StormPyError

from . import codec

#: The parsed IDL, as a module.
IDL: Final[Any] = thriftpy2.load(
    str(Path(__file__).with_name("storm.thrift")), module_name="storm_py.rpc.storm_thrift"
)

#: Storm's exceptions, by the class that this project raises for each.
EXCEPTIONS: Final[Mapping[type[StormPyError], type]] = MappingProxyType(
    {getattr(errors, cls.__name__): cls for cls in IDL.__thrift_meta__["exceptions"]}
)

#: Arguments that may be left out: a supervisor page is asked for by id or by host.
OPTIONAL_ARGUMENTS: Final = frozenset(
    {("getSupervisorPageInfo", "id"), ("getSupervisorPageInfo", "host")}
)

_UNIONS: Final = frozenset(cls.__name__ for cls in IDL.__thrift_meta__["unions"])


@dataclass(frozen=True, slots=True)
class Method:
    """One call: what it takes and gives."""

    name: str
    #: A struct whose fields are the parameters, by ascending ids...
    arguments: codec.Struct
    #: ...and one whose field 0, if there is one, is the result, and the others exceptions.
    result: codec.Struct
    parameters: tuple[str, ...]
    #: Field of `result` by the class of the exception that it is for.
    throws: Mapping[type[StormPyError], codec.Field]

    @property
    def returns(self) -> bool:
        """Whether it gives something."""
        return 0 in self.result.fields

    def bind(self, given: tuple[object, ...], named: Mapping[str, object]) -> object:
        """The struct of these arguments; TypeError if they do not fit, as Python's own calls."""
        if len(given) > len(self.parameters):
            raise TypeError(
                f"{self.name} takes {len(self.parameters)} arguments, {len(given)} were given"
            )
        bound = dict(zip(self.parameters, given, strict=False))
        for name, value in named.items():
            if name not in self.parameters:
                raise TypeError(f"{self.name} has no argument {name!r}: {self.parameters}")
            if name in bound:
                raise TypeError(f"{self.name} got its argument {name!r} twice")
            bound[name] = value
        made: object = self.arguments.cls(**bound)
        return made

    def unbind(self, arguments: object) -> list[object]:
        """What `bind` put into a struct, in the order of the parameters."""
        return [getattr(arguments, name) for name in self.parameters]


def _kind_of(spec: Any) -> codec.Kind:
    """The kind of a type as thriftpy2 notes it: a code, or a code and what it holds."""
    code, inner = spec if isinstance(spec, tuple) else (spec, None)
    if code == TType.BOOL:
        return codec.Bool()
    if code == TType.DOUBLE:
        return codec.Double()
    if code == TType.STRING:
        return codec.TEXT
    if code == TType.BINARY:
        return codec.BYTES
    if code in (TType.LIST, TType.SET):
        return codec.Sequence(code, _kind_of(inner))
    if code == TType.MAP:
        return codec.Map(_kind_of(inner[0]), _kind_of(inner[1]))
    if code == TType.STRUCT:
        return struct_of(inner)
    if inner is not None:
        return codec.enum(inner.__name__, inner._VALUES_TO_NAMES)
    return codec.INTEGERS[code]


def _specs_of(cls: Any) -> Iterator[tuple[int, str, Any, bool]]:
    """Id, name, type and whether it is required, of each field, by ascending ids."""
    for number, (code, name, *inner, required) in sorted(cls.thrift_spec.items()):
        yield number, name, (code, inner[0]) if inner else code, required


@cache
def struct_of(cls: type) -> codec.Struct:
    """How objects of a class of the IDL are written and read; the same each time."""
    fields = [
        codec.Field(number, name, _kind_of(spec), required, f"{cls.__name__}.{name}")
        for number, name, spec, required in _specs_of(cls)
    ]
    return codec.Struct(cls, fields, cls.__name__ in _UNIONS)


def _method_of(service: Any, name: str) -> Method:
    arguments, result = getattr(service, f"{name}_args"), getattr(service, f"{name}_result")
    fields = [
        codec.Field(
            number, parameter, _kind_of(spec), (name, parameter) not in OPTIONAL_ARGUMENTS, label
        )
        for number, parameter, spec, _ in _specs_of(arguments)
        for label in [f"{name}({parameter})"]
    ]
    answers = struct_of(result)
    by_class = {field.kind.name: field for field in answers.fields.values() if field.id}
    return Method(
        name=name,
        arguments=codec.Struct(arguments, fields),
        result=answers,
        parameters=tuple(field.name for field in fields),
        throws={
            error: by_class[cls.__name__]
            for error, cls in EXCEPTIONS.items()
            if cls.__name__ in by_class
        },
    )


#: The calls of Storm's nimbus, by name.
NIMBUS: Final[Mapping[str, Method]] = MappingProxyType(
    {name: _method_of(IDL.Nimbus, name) for name in IDL.Nimbus.thrift_services}
)

#: What a call is answered with that cannot be answered as the IDL says.
FAILURE: Final = struct_of(TApplicationException)
