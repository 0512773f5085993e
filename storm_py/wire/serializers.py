"""Registered serializers: classes that travel as bytes which functions of the user's make.

The counterpart of Storm's Kryo registrations; pickle, its Java serialization, is the fallback for
those who ask for it. Pure, but for what those functions do.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from storm_py.errors import ProtocolError

from .standard import UnserialisableValue


@dataclass(frozen=True, slots=True)
class Serializer:
    """How instances of exactly one class travel.

    `dumps` makes bytes of an instance, `loads` an instance of the bytes.
    """

    kind: type
    dumps: Callable[[Any], bytes]
    loads: Callable[[bytes], object]

    def content(self, value: object) -> bytes:
        """What `dumps` makes of a value, or UnserialisableValue."""
        try:
            data: object = self.dumps(value)
        except (Exception, SystemExit) as error:
            raise UnserialisableValue(
                f"its serializer {_name(self.dumps)} raised {type(error).__name__}: {error}"
            ) from error
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise UnserialisableValue(
                f"its serializer {_name(self.dumps)} returned {type(data).__name__}, expected bytes"
            )
        return bytes(data)

    def value(self, data: bytes) -> object:
        """What `loads` makes of the bytes, or ProtocolError."""
        try:
            return self.loads(data)
        except (Exception, SystemExit) as error:
            raise ProtocolError(
                f"a value of the class {_name(self.kind)} cannot be read: {_name(self.loads)} "
                f"raised {type(error).__name__}: {error}"
            ) from error


def dump_pickle(value: object) -> bytes:
    """A value pickled, or UnserialisableValue."""
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise UnserialisableValue(f"pickling it raised {type(error).__name__}: {error}") from error


def _name(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"
