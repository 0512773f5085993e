"""Enum members and dataclass instances on the wire: by the import path of their class.

The receiver imports the class and makes the same member or an equal instance. No code of the class
runs for that: neither `__init__` nor `__post_init__` nor `__setattr__`, the fields are put in place
as pickle does. A class that the receiver could not find again is refused where it is emitted. Pure,
but for the import of the module that a value names.
"""

from __future__ import annotations

import dataclasses
import enum
from functools import cached_property
from typing import Any, Final

from storm_py.errors import ProtocolError
from storm_py.imports import NotImportable, path_of, resolve

from .standard import NATIVES, UnserialisableValue

#: A dataclass that is one of these as well would lose what it holds as such.
_CONTAINERS: Final = (*NATIVES, complex, tuple, set, frozenset)


class EnumForm:
    """The wire form of the members of one Enum: (path, name), or (path, number) for flags."""

    def __init__(self, kind: type[enum.Enum]) -> None:
        self.kind = kind
        self.path = path_of(kind)

    def parts(self, member: enum.Enum) -> list[object]:
        """What travels for one member."""
        flag = isinstance(member, enum.Flag)
        return [self.path, member.value if flag else member.name]

    def member(self, key: object) -> enum.Enum:
        """The member that was sent as this name or number."""
        found = self.kind.__members__.get(key) if isinstance(key, str) else None
        if found is None and type(key) is int and issubclass(self.kind, enum.Flag):
            found = self._flags(key)
        if found is None:
            raise ProtocolError(f"the Enum {self.path} has no member {key!r:.80} here")
        return found

    def _flags(self, number: int) -> enum.Enum | None:
        try:
            found = self.kind(number)
        except ValueError:
            return None
        return found if found.value == number else None  # some Pythons drop what they do not know


class DataclassForm:
    """The wire form of the instances of one dataclass: (path, value of each field by name)."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.path = path_of(kind)
        self.names = tuple(field.name for field in dataclasses.fields(kind))
        self._known = frozenset(self.names)
        base = next((base for base in _CONTAINERS if issubclass(kind, base)), None)
        if base is not None:
            raise UnserialisableValue(f"it is a dataclass and a {base.__name__} at once")
        try:
            object.__new__(kind)
        except TypeError as error:
            raise UnserialisableValue(
                f"an instance cannot be made from its fields ({error})"
            ) from error

    def content(self, value: object) -> dict[str, object]:
        """The fields of one instance."""
        content: dict[str, object] = {}
        for name in self.names:
            try:
                content[name] = getattr(value, name)
            except AttributeError:
                raise UnserialisableValue(f"its field {name!r} has no value") from None
        more = getattr(value, "__dict__", None)
        if more and not self._known.issuperset(more):
            self._check_rest(more)
        return content

    def _check_rest(self, attributes: dict[str, object]) -> None:
        """Refuse what would get lost silently; a cached property is computed anew."""
        for name in attributes.keys() - self._known:
            known = getattr(self.kind, name, None)
            if not isinstance(known, cached_property) and not name.startswith("__"):
                raise UnserialisableValue(
                    f"its attribute {name!r} is no field and would be lost; declare it as a field, "
                    "with init=False if need be"
                )

    def instance(self, content: object) -> object:
        """The instance with these fields."""
        if not isinstance(content, dict) or content.keys() != self._known:
            raise ProtocolError(
                f"an instance of {self.path} came with other fields than it has here: "
                f"{', '.join(self.names)}"
            )
        made: object = object.__new__(self.kind)
        for name, value in content.items():
            object.__setattr__(made, name, value)
        return made


def form_of(kind: type) -> EnumForm | DataclassForm | None:
    """The form of a class, None if it is neither an Enum nor a dataclass.

    Raises NotImportable if no other process would find it, UnserialisableValue if its instances
    cannot be made from their fields.
    """
    if issubclass(kind, enum.Enum):
        return EnumForm(kind)
    return DataclassForm(kind) if dataclasses.is_dataclass(kind) else None


def find_form(path: Any, expected: type[EnumForm] | type[DataclassForm]) -> Any:
    """The form of the class behind the path in a message, or ProtocolError that names it."""
    if not isinstance(path, str):
        raise ProtocolError(f"the class of a value is named by {type(path).__name__}, not by a str")
    try:
        kind = resolve(path)
        form = form_of(kind) if isinstance(kind, type) else None
    except (NotImportable, UnserialisableValue) as error:
        raise ProtocolError(f"a value of the class {path:.200} cannot be read: {error}") from error
    if not isinstance(form, expected) or form.path != path:
        what = "an Enum" if expected is EnumForm else "a dataclass"
        raise ProtocolError(
            f"a value of the class {path:.200} cannot be read: that is not {what} of this name"
        )
    return form
