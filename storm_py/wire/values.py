"""User values as msgpack: what a row may hold, and how each type travels.

Rows are packed one by one, at the moment of the emit, so that an error appears at the call site and
a list that user code reuses cannot change a batch. msgpack's natives travel as they are; other
types travel as extension types and arrive as what they were. A `Codec` is what the processes of one
topology agree on: what is built in, its registered serializers, and whether it may pickle the rest.
Pure: bytes in, values out, but for the import of a class that a value names. Frames around the rows
are `storm_py.wire.frames`; docs/values.md says all this to users.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from typing import Any, Final

import msgpack

from storm_py.errors import ProtocolError
from storm_py.imports import NotImportable, path_of

from .arrays import dump_array, dump_scalar, is_array, is_scalar, load_array, load_scalar
from .classes import DataclassForm, EnumForm, find_form, form_of
from .serializers import Serializer, dump_pickle
from .standard import LEAVES, NATIVES, UnserialisableValue, dump_int, dump_parts, load_parts

__all__ = [
    "PLAIN",
    "Codec",
    "Serializer",
    "UnserialisableValue",
]

# Codes on the wire, never reused; 5 to 11 are those of `LEAVES`.
_TUPLE: Final = 1
_SET: Final = 2
_FROZENSET: Final = 3
_BIG_INT: Final = 4
_ENUM: Final = 12
_DATACLASS: Final = 13
_SCALAR: Final = 14
_ARRAY: Final = 15
_REGISTERED: Final = 16
_PICKLE: Final = 17

_MIN_INT: Final = -(2**63)
_MAX_INT: Final = 2**64 - 1

#: Tuples, sets and dataclasses inside each other, at most. Each level is a call of the unpacker in
#: the consumer and takes 40 KB of its C stack: about 190 of them would crash the process. Lists and
#: dicts alone may nest as deep as msgpack allows (511).
_MAX_DEPTH: Final = 64
#: Lists and dicts between them recurse in the packer's C stack, 511 a level, and 40 such levels
#: crashed it. From this level on the rest, whatever it is made of, is held to `_MAX_DEPTH`.
_CHECKED_DEPTH: Final = 8

_TOO_DEEP: Final = f"value is nested deeper than {_MAX_DEPTH} levels"

#: Classes whose way to travel is remembered; above that all are looked at anew.
_MAX_CLASSES: Final = 4096

#: Storm's topology.fall.back.on.java.serialization, to be named in errors.
_PICKLE_KEY: Final = "storm_py.fall.back.on.pickle"

#: The builtin types that hold other values and are extensions.
_NESTING: Final[dict[type, int]] = {tuple: _TUPLE, set: _SET, frozenset: _FROZENSET}
_NESTED: Final[dict[int, type]] = {code: kind for kind, code in _NESTING.items()}

#: How a value of one class is turned into something that msgpack packs; given value and depth.
_Convert = Callable[[Any, int], object]
_Hook = Callable[[int, bytes], object]


class Codec:
    """The values that the processes of one topology exchange.

    Every process makes the same one from the topology's configuration: a registered class is known
    on the wire by its place in `serializers`. With `pickling`, a type that is neither built in nor
    registered travels pickled.
    """

    def __init__(self, serializers: Sequence[Serializer] = (), pickling: bool = False) -> None:
        self._serializers = tuple(serializers)
        self._pickling = pickling
        self._registered: dict[type, _Convert] = {
            one.kind: partial(_registered, one, place)
            for place, one in enumerate(self._serializers)
        }
        self._forms: dict[str, EnumForm | DataclassForm] = {}
        # The same function for each depth, made once.
        self._defaults = [partial(self._to_ext, depth=depth) for depth in range(_MAX_DEPTH + 1)]
        self._builtin: dict[type, _Convert] = {
            **{kind: partial(self._nest, code) for kind, code in _NESTING.items()},
            **{kind: partial(_leaf, code, dump) for kind, (code, dump, _) in LEAVES.items()},
        }
        self._converts = {**self._builtin, **self._registered}
        self._loads: dict[int, Callable[[bytes], object]] = {
            **{code: load for code, _, load in LEAVES.values()},
            _BIG_INT: lambda data: int.from_bytes(data, "little", signed=True),
            _ENUM: self._load_enum,
            _SCALAR: load_scalar,
            _ARRAY: load_array,
            _REGISTERED: self._load_registered,
            _PICKLE: self._load_pickle,
        }
        hook = self._hook(None)
        for _ in range(_MAX_DEPTH):
            hook = self._hook(hook)
        self._ext_hook = hook

    @property
    def dumps(self) -> Mapping[type, Callable[[Any], bytes]]:
        """The `dumps` of each registered class."""
        return {one.kind: one.content for one in self._serializers}

    # ---- to bytes ------------------------------------------------------------------------------

    def packer(self) -> Callable[[object], bytes]:
        """A function that packs one row; each instance makes its own, for its own thread.

        A failing pack empties the packer's buffer, which is harmless as every row is packed alone.
        Lone surrogates make it fail: to allow them costs every other str a copy of its own.
        """
        packer = msgpack.Packer(use_bin_type=True, strict_types=True, default=self._defaults[0])
        pack: Callable[[object], bytes] = packer.pack
        return pack

    def pack_slowly(self, row: list[object]) -> bytes:
        """Pack a row that the plain packer refused: integers beyond 64 bits and lone surrogates.

        Raises UnserialisableValue naming the place and type of the first value that cannot travel.
        """
        wide = [self._widen(value, f"[{i}]", 0) for i, value in enumerate(row)]
        return self._packb(wide, 0)

    def _packb(self, value: object, depth: int) -> bytes:
        packed: bytes = msgpack.packb(
            value,
            strict_types=True,
            unicode_errors="surrogatepass",
            default=self._defaults[depth],
        )
        return packed

    def _to_ext(self, value: object, depth: int) -> object:
        convert = self._converts.get(type(value))
        if convert is None:
            convert = self._learn(type(value))
        return convert(value, depth)

    def _nest(self, code: int, value: Any, depth: int) -> msgpack.ExtType:
        content = list(value)
        if depth >= _CHECKED_DEPTH:
            self._check_depth(content, depth)
        return msgpack.ExtType(code, self._packb(content, depth + 1))

    def _nest_instance(self, form: DataclassForm, value: object, depth: int) -> msgpack.ExtType:
        return self._nest(_DATACLASS, (form.path, form.content(value)), depth)

    def _check_depth(self, content: list[Any], depth: int) -> None:
        """Refuse the content of a value at this depth if it is nested too deeply."""
        if depth == _CHECKED_DEPTH:
            self._check_height(content, _MAX_DEPTH - depth)
        elif depth >= _MAX_DEPTH:
            raise UnserialisableValue(_TOO_DEEP)

    def _check_height(self, value: object, left: int) -> None:
        if not left:
            raise UnserialisableValue(_TOO_DEEP)
        for part in self._parts(value):
            self._check_height(part, left - 1)

    def _parts(self, value: object) -> Iterator[object]:
        """What a value holds, if it is of a kind whose content is packed one level deeper."""
        if type(value) in self._registered:
            return
        if isinstance(value, (list, tuple, set, frozenset)):
            yield from value
        elif isinstance(value, dict):
            yield from value
            yield from value.values()
        elif is_dataclass(value) and not isinstance(value, (type, Enum)):
            yield from (getattr(value, field.name, None) for field in fields(value))

    # ---- classes -------------------------------------------------------------------------------

    def _learn(self, kind: type) -> _Convert:
        """How values of a class seen for the first time travel; UnserialisableValue if not."""
        try:
            convert = self._convert_of(kind)
        except NotImportable as error:
            raise UnserialisableValue(str(error)) from None
        if len(self._converts) >= _MAX_CLASSES:
            self._converts = {**self._builtin, **self._registered}
        self._converts[kind] = convert
        return convert

    def _convert_of(self, kind: type) -> _Convert:
        try:
            form = form_of(kind)
        except UnserialisableValue as error:
            return self._otherwise(kind, str(error))
        if isinstance(form, EnumForm):
            return partial(_member, form)
        if isinstance(form, DataclassForm):
            return partial(self._or_otherwise, partial(self._nest_instance, form))
        if is_scalar(kind):
            return partial(self._or_otherwise, partial(_leaf, _SCALAR, dump_scalar))
        if is_array(kind):
            return partial(self._or_otherwise, partial(_leaf, _ARRAY, dump_array))
        for native in NATIVES:
            if issubclass(kind, native):
                return partial(_plain, native)
        for base, convert in self._builtin.items():
            if issubclass(kind, base):
                return convert
        if issubclass(kind, (bytearray, memoryview)):
            return partial(_plain, bytes)
        return self._otherwise(kind, "")

    def _otherwise(self, kind: type, reason: str) -> _Convert:
        """The way of a class that is neither built in nor registered."""
        if not self._pickling:
            raise UnserialisableValue(reason)
        if kind.__module__ != "builtins":
            path_of(kind)
        return partial(_leaf, _PICKLE, dump_pickle)

    def _or_otherwise(self, convert: _Convert, value: object, depth: int) -> object:
        """Convert a value of a class of which only some instances have a wire form."""
        try:
            return convert(value, depth)
        except UnserialisableValue as error:
            return self._otherwise(type(value), str(error))(value, depth)

    # ---- to bytes, with a look at everything ---------------------------------------------------

    def _widen(self, value: object, where: str, depth: int) -> object:
        """The value with integers beyond 64 bits replaced; names the first that cannot travel."""
        if depth > _MAX_DEPTH:
            raise UnserialisableValue(
                f"value{where[:40]}... is nested deeper than {_MAX_DEPTH} levels, or holds itself"
            )
        kind = type(value)
        if kind not in self._registered and not isinstance(value, Enum):
            if isinstance(value, int):
                if _MIN_INT <= value <= _MAX_INT:
                    return value
                return msgpack.ExtType(_BIG_INT, dump_int(int(value)))
            if is_dataclass(kind):
                return self._widen_instance(value, where, depth)
            if isinstance(value, list):
                return [self._widen(v, f"{where}[{i}]", depth + 1) for i, v in enumerate(value)]
            if isinstance(value, dict):
                return {
                    self._widen(k, where, depth + 1): self._widen(v, where + _index(k), depth + 1)
                    for k, v in value.items()
                }
            for base, code in _NESTING.items():
                if isinstance(value, base):
                    items: list[object] = list(value)  # type: ignore[call-overload]
                    wide = [self._widen(v, f"{where}[{i}]", depth + 1) for i, v in enumerate(items)]
                    return self._nest(code, wide, 0)
        try:
            self._nest(_TUPLE, (value,), 0)
        except Exception as error:
            raise _refusal(where, value, error) from error
        return value

    def _widen_instance(self, value: object, where: str, depth: int) -> object:
        try:
            form = form_of(type(value))
            content = form.content(value) if isinstance(form, DataclassForm) else {}
        except (NotImportable, UnserialisableValue) as error:
            if self._pickling and isinstance(error, UnserialisableValue):
                return _leaf(_PICKLE, dump_pickle, value, depth)
            raise _refusal(where, value, error) from error
        wide = {
            name: self._widen(part, f"{where}.{name}", depth + 1) for name, part in content.items()
        }
        assert form is not None
        return self._nest(_DATACLASS, (form.path, wide), 0)

    # ---- from bytes ----------------------------------------------------------------------------

    def unpack_rows(self, rows: bytes | memoryview) -> list[list[object]]:
        """The rows behind a frame's header, or ProtocolError."""
        try:
            unpacked: list[list[object]] = msgpack.unpackb(
                rows,
                strict_map_key=False,
                unicode_errors="surrogatepass",
                ext_hook=self._ext_hook,
            )
        except ProtocolError:
            raise
        except Exception as error:  # a key's own __hash__ and __eq__ run in here
            raise ProtocolError(
                f"rows do not unpack: {str(error) or type(error).__name__}"
            ) from error
        return unpacked

    def unpack_row(self, row: bytes) -> list[object]:
        """One row, as `packer` packed it."""
        (found,) = self.unpack_rows(b"\x91" + row)
        return found

    def _hook(self, deeper: _Hook | None) -> _Hook:
        """What reads the extension values at one depth; `deeper` reads those inside of them."""
        nesting = {} if deeper is None else _NESTED
        loads = self._loads

        def from_ext(code: int, data: bytes) -> object:
            nested = nesting.get(code)
            try:
                if nested is not None:
                    return nested(load_parts(data, deeper))
                load = loads.get(code)
                if load is not None:
                    return load(data)
                if code == _DATACLASS and deeper is not None:
                    return self._instance(*load_parts(data, deeper))
            except ProtocolError:
                raise
            except Exception as error:  # whatever damaged bytes make a type raise
                raise ProtocolError(
                    f"extension value of type {code} is malformed: {error}"
                ) from error
            if deeper is None:
                raise ProtocolError(f"values are nested deeper than {_MAX_DEPTH} levels")
            raise ProtocolError(f"extension type {code} is unknown")

        return from_ext

    def _instance(self, path: object, content: object) -> object:
        return self._form(path, DataclassForm).instance(content)

    def _load_enum(self, data: bytes) -> object:
        path, key = load_parts(data)
        return self._form(path, EnumForm).member(key)

    def _form(self, path: Any, expected: Any) -> Any:
        form = self._forms.get(path) if isinstance(path, str) else None
        if not isinstance(form, expected):
            form = find_form(path, expected)
            self._forms[path] = form
        return form

    def _load_registered(self, data: bytes) -> object:
        place = int.from_bytes(data[:2], "little")
        if len(data) < 2 or place >= len(self._serializers):
            raise ProtocolError(
                f"a value of registered class {place} came, but storm_py.serializers holds "
                f"{len(self._serializers)}"
            )
        return self._serializers[place].value(data[2:])

    def _load_pickle(self, data: bytes) -> object:
        if not self._pickling:
            raise ProtocolError(f"a pickled value came, but {_PICKLE_KEY} is false")
        return pickle.loads(data)


def _index(key: object) -> str:
    try:
        return f"[{key!r:.40}]"
    except Exception:  # noqa: BLE001 - an int of too many digits, or a __repr__ that fails
        return f"[{type(key).__name__}]"


def _refusal(where: str, value: object, error: Exception) -> UnserialisableValue:
    kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    reason = f": {error}" if str(error) else ""
    return UnserialisableValue(f"value{where} of type {kind} cannot be serialised{reason}")


def _leaf(code: int, dump: Callable[[Any], bytes], value: Any, depth: int) -> msgpack.ExtType:
    return msgpack.ExtType(code, dump(value))


def _member(form: EnumForm, value: Enum, depth: int) -> msgpack.ExtType:
    return msgpack.ExtType(_ENUM, dump_parts(form.parts(value)))


def _registered(serializer: Serializer, place: int, value: Any, depth: int) -> msgpack.ExtType:
    return msgpack.ExtType(_REGISTERED, place.to_bytes(2, "little") + serializer.content(value))


def _plain(base: type, value: Any, depth: int) -> object:
    # str(value) would call a subclass's __str__: take the base's own content.
    return str.__str__(value) if base is str else base(value)


#: The codec of a topology that registers nothing and pickles nothing.
PLAIN: Final = Codec()
