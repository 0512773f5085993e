"""docs/values.md: its program runs, and its table is true."""

from __future__ import annotations

import datetime as dt
import re
import sys
from collections import Counter, OrderedDict, defaultdict, namedtuple
from fractions import Fraction
from pathlib import Path, PurePath
from typing import Any

import pytest

from storm_py.config import defaults
from storm_py.engine.settings import codec_of
from storm_py.wire.values import UnserialisableValue
from tests.travel import travelled

PAGE = Path(__file__).parent.parent.parent / "docs" / "values.md"
Point = namedtuple("Point", "x y")


def test_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [program] = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "shop_of_the_page.py").write_text(program, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "shop_of_the_page", raising=False)
    shop: Any = __import__("shop_of_the_page")
    monkeypatch.setitem(sys.modules, "shop_of_the_page", shop)
    codec = codec_of({**defaults(), **shop.conf})
    money: Any = travelled(shop.Money(5, "EUR"), codec)
    assert type(money) is shop.Money
    assert (money.cents, money.currency) == (5, "EUR")
    [command] = re.findall(r"-c 'storm_py\.serializers=(.*)'", PAGE.read_text(encoding="utf-8"))
    named = str(shop.conf["storm_py.serializers"]).replace("_of_the_page", "").replace("'", '"')
    assert command == named


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (bytearray(b"a"), bytes),
        (memoryview(b"a"), bytes),
        (Point(1, 2), tuple),
        (OrderedDict(a=1), dict),
        (defaultdict(int, a=1), dict),
        (Counter("a"), dict),
    ],
)
def test_arrives_as_the_base(value: object, kind: type) -> None:
    assert type(travelled(value)) is kind


@pytest.mark.parametrize("value", [Fraction(1, 3), range(3), PurePath("a"), print, object()])
def test_is_refused(value: object) -> None:
    with pytest.raises(UnserialisableValue, match=r"^value\[0\] of type .* cannot be serialised$"):
        travelled(value)


def test_a_time_zone_without_a_name_arrives_as_its_offset() -> None:
    class Odd(dt.tzinfo):
        def utcoffset(self, when: dt.datetime | None) -> dt.timedelta:
            return dt.timedelta(hours=2)

        def dst(self, when: dt.datetime | None) -> None:
            return None

        def tzname(self, when: dt.datetime | None) -> str:
            return "odd"

    result = travelled(dt.datetime(2026, 1, 2, tzinfo=Odd()))
    assert isinstance(result, dt.datetime)
    assert result.tzinfo == dt.timezone(dt.timedelta(hours=2))
