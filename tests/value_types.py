"""Classes whose instances travel in tests: found again under the path of this module."""

from __future__ import annotations

import enum
import struct
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from typing import Any, ClassVar


class Colour(str, enum.Enum):  # noqa: UP042 - its __str__ differs from the value
    RED = "red"
    CRIMSON = "red"  # noqa: PIE796 - an alias
    BLUE = "blue"

    def __str__(self) -> str:
        return "not the value"


class Shade(enum.StrEnum):
    DARK = enum.auto()


class Level(enum.IntEnum):
    HIGH = 3
    HUGE = 2**70


class Plain(enum.Enum):
    ONE = 1
    PAIR = (1, [2])


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Bits(enum.IntFlag):
    LOW = 1
    TOP = 2**63


@dataclass(frozen=True)
class Money:
    """Says nothing when it is made: that happened once, at the sender."""

    cents: int
    colour: object = None
    made: ClassVar[int] = 0

    def __post_init__(self) -> None:
        Money.made += 1

    @cached_property
    def euros(self) -> float:
        """An attribute that is no field, once it was asked for."""
        return self.cents / 100


@dataclass(frozen=True, slots=True)
class Slotted:
    text: str


@dataclass
class Order:
    first: Any
    rest: list[Any] = field(default_factory=list)
    count: int = field(init=False, default=0)

    class Line(enum.Enum):
        """Nested in another class."""

        ONLY = 1


@dataclass
class Seeded:
    seed: InitVar[int]
    grown: int = 0

    def __post_init__(self, seed: int) -> None:
        self.grown = seed * 2


@dataclass
class Unfit:
    """What dataclasses may be that cannot be made from their fields."""

    value: int = 0

    def keep(self) -> None:
        """Add an attribute that is no field."""
        self.extra = 1


@dataclass
class Numbers(list[int]):
    name: str = ""


@dataclass
class Problem(Exception):
    name: str = ""


class Cash:
    """Travels only with a serializer."""

    def __init__(self, cents: int) -> None:
        self.cents = cents

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cash) and self.cents == other.cents

    def __hash__(self) -> int:
        return hash(self.cents)

    def to_bytes(self) -> bytes:
        """The usual way to write a serializer."""
        return struct.pack("<q", self.cents)

    @classmethod
    def from_bytes(cls, data: bytes) -> Cash:
        """And back."""
        return cls(*struct.unpack("<q", data))


class Coin(Cash):
    """A subclass: not what is registered."""


class Name(str):
    """Equal to a plain str."""

    __slots__ = ()


def shout(name: Name) -> bytes:
    """A serializer of names."""
    return name.upper().encode()


def whisper(data: bytes) -> Name:
    """And back."""
    return Name(data.decode().lower())


def no_bytes(value: object) -> Any:
    """A serializer that breaks the contract."""
    return "text"


def refuse(value: object) -> Any:
    """A serializer that fails."""
    raise LookupError("never heard of it")


NOT_CALLABLE = 3
