"""Fields, Values, GlobalStreamId and Tuple."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py import Fields, GlobalStreamId, Tuple, Values
from storm_py.api.tuples import TupleContext

names = st.lists(st.text(min_size=1, max_size=4), unique=True, max_size=6)


def word_tuple(*values: object) -> Tuple:
    context = TupleContext("split", "words", 7, Fields("word", "count"))
    return Tuple(list(values), context)


class TestFields:
    def test_the_ways_to_make_them(self) -> None:
        expected = Fields("word", "count")
        assert Fields(["word", "count"]) == expected
        assert Fields(("word", "count")) == expected
        assert Fields(expected) == expected
        assert Fields(name for name in ("word", "count")) == expected

    def test_a_single_str_is_one_field(self) -> None:
        assert Fields("word").to_list() == ["word"]

    def test_none_at_all(self) -> None:
        assert Fields().to_list() == Fields([]).to_list() == []
        assert not Fields()

    def test_sequence(self) -> None:
        fields = Fields("a", "b", "c")
        assert isinstance(fields, Sequence)
        assert len(fields) == 3
        assert list(fields) == fields.to_list() == ["a", "b", "c"]
        assert (fields[0], fields[-1], fields[1:]) == ("a", "c", ("b", "c"))
        assert list(reversed(fields)) == ["c", "b", "a"]
        assert fields.count("b") == 1

    def test_to_list_is_a_copy(self) -> None:
        fields = Fields("a")
        fields.to_list().append("b")
        assert fields == Fields("a")

    def test_contains(self) -> None:
        fields = Fields("a", "b")
        assert fields.contains("a")
        assert "b" in fields
        assert not fields.contains("c")
        assert "c" not in fields
        assert not fields.__contains__(["a"])

    def test_index(self) -> None:
        fields = Fields("a", "b", "c")
        assert fields.index("b") == 1
        assert fields.index("b", 1) == 1
        assert fields.index("b", -2, -1) == 1

    @pytest.mark.parametrize("bounds", [(2,), (0, 1), (-1,)])
    def test_index_outside_of_its_bounds(self, bounds: tuple[int, ...]) -> None:
        with pytest.raises(ValueError, match="no field 'b'"):
            Fields("a", "b", "c").index("b", *bounds)

    def test_index_of_an_unknown_field(self) -> None:
        with pytest.raises(ValueError, match="no field 'wrod' in") as caught:
            Fields("word", "count").index("wrod")
        assert str(caught.value) == "no field 'wrod' in ['word', 'count']; did you mean 'word'?"

    @pytest.mark.parametrize(
        ("given", "error", "message"),
        [
            ((1,), TypeError, "1 is no field name"),
            ((None,), TypeError, "None is no field name"),
            (("a", ["b"]), TypeError, "['b'] is no field name"),
            ((["a", 2],), TypeError, "2 is no field name"),
            ((b"word",), TypeError, "119 is no field name"),
            (("a", ""), ValueError, "a field name is empty"),
            (("a", "b", "a"), ValueError, "field 'a' appears twice in ['a', 'b', 'a']"),
            ((["a", "a"],), ValueError, "field 'a' appears twice"),
        ],
    )
    def test_refused(self, given: tuple[str], error: type[Exception], message: str) -> None:
        with pytest.raises(error) as caught:
            Fields(*given)
        assert message in str(caught.value)

    def test_equality_is_by_names_and_order(self) -> None:
        assert Fields("a", "b") != Fields("b", "a")
        assert Fields("a") != ["a"]
        assert len({Fields("a"), Fields(["a"]), Fields("b")}) == 2

    def test_repr(self) -> None:
        assert repr(Fields("word", "count")) == "Fields('word', 'count')"

    @given(names)
    def test_laws(self, given: list[str]) -> None:
        fields = Fields(*given)
        assert fields.to_list() == given
        assert [fields.index(name) for name in given] == list(range(len(given)))
        for twin in (Fields(given), copy.deepcopy(fields), pickle.loads(pickle.dumps(fields))):
            assert twin == fields
            assert hash(twin) == hash(fields)
            assert [twin.index(name) for name in given] == list(range(len(given)))


class TestValues:
    def test_it_is_a_list_of_its_arguments(self) -> None:
        assert Values("word", 1) == ["word", 1]
        assert isinstance(Values(), list)
        assert Values(["a"]) == [["a"]]

    @given(st.lists(st.integers()))
    def test_copies(self, given: list[int]) -> None:
        values = Values(*given)
        for twin in (copy.deepcopy(values), pickle.loads(pickle.dumps(values))):
            assert twin == given
            assert type(twin) is Values


class TestGlobalStreamId:
    def test_the_stream_is_default_by_default(self) -> None:
        assert GlobalStreamId("split") == GlobalStreamId("split", "default")
        assert str(GlobalStreamId("split")) == "split:default"

    def test_it_is_a_value(self) -> None:
        assert len({GlobalStreamId("a"), GlobalStreamId("a"), GlobalStreamId("a", "b")}) == 2
        assert sorted([GlobalStreamId("b"), GlobalStreamId("a", "z"), GlobalStreamId("a")]) == [
            GlobalStreamId("a"),
            GlobalStreamId("a", "z"),
            GlobalStreamId("b"),
        ]

    def test_it_is_frozen(self) -> None:
        with pytest.raises(AttributeError):
            GlobalStreamId("a").component_id = "b"  # type: ignore[misc]


class TestTuple:
    def test_where_it_comes_from(self) -> None:
        tup = word_tuple("storm", 1)
        assert tup.source_component == "split"
        assert tup.source_stream_id == "words"
        assert tup.source_task == 7
        assert tup.source_global_stream_id == GlobalStreamId("split", "words")
        assert tup.fields == Fields("word", "count")
        assert tup.message_id == {}
        assert not tup.is_tick

    def test_values(self) -> None:
        tup = word_tuple("storm", 1)
        assert tup.values == ["storm", 1]
        assert (tup.get_value(0), tup.get_value(1)) == ("storm", 1)
        assert (tup[0], tup[-1], tup["word"]) == ("storm", 1, "storm")
        assert tup.get_value_by_field("count") == 1
        assert len(tup) == 2
        assert list(tup) == ["storm", 1]
        word, count = tup
        assert (word, count) == ("storm", 1)

    def test_the_values_are_not_copied(self) -> None:
        values = ["storm", 1]
        assert Tuple(values, TupleContext("a", "b", 1, Fields("c", "d"))).values is values

    def test_fields_of_it(self) -> None:
        tup = word_tuple("storm", 1)
        assert tup.field_index("count") == 1
        assert tup.contains("word")
        assert not tup.contains("wrod")

    def test_select(self) -> None:
        tup = word_tuple("storm", 1)
        assert tup.select(Fields("count", "word")) == [1, "storm"]
        assert tup.select(["word", "word"]) == ["storm", "storm"]
        assert tup.select("count") == [1]
        assert tup.select(Fields()) == []

    def test_an_unknown_field_is_explained_however_it_is_asked_for(self) -> None:
        tup = word_tuple("storm", 1)
        for ask in (tup.get_value_by_field, tup.field_index, tup.__getitem__):
            with pytest.raises(ValueError, match="no field 'wrod'") as caught:
                ask("wrod")
            assert str(caught.value) == (
                "tuple of stream 'words' of 'split' has no field 'wrod'; "
                "declared fields: word, count; did you mean 'word'?"
            )
        with pytest.raises(ValueError, match="has no field 'x'"):
            tup.select(["word", "x"])

    def test_a_field_of_a_tick_that_was_meant_for_data(self) -> None:
        tick = Tuple([5], TupleContext("__system", "__tick", -1, Fields("rate_secs")))
        with pytest.raises(ValueError, match="no field 'rate'") as caught:
            tick["rate"]
        assert str(caught.value) == (
            "tuple of stream '__tick' of '__system' has no field 'rate'; declared fields: "
            "rate_secs; it is a tick of the system: ask tup.is_tick first"
        )

    def test_an_unknown_field_of_a_tuple_without_fields(self) -> None:
        tup = Tuple([], TupleContext("a", "b", 1, Fields()))
        with pytest.raises(ValueError, match="declared fields: none"):
            tup["x"]

    def test_a_position_outside(self) -> None:
        with pytest.raises(IndexError):
            word_tuple("storm", 1).get_value(2)

    @pytest.mark.parametrize(
        ("component", "stream", "is_tick"),
        [
            ("__system", "__tick", True),
            ("__system", "default", False),
            ("clock", "__tick", False),
        ],
    )
    def test_is_tick(self, component: str, stream: str, is_tick: bool) -> None:
        tup = Tuple([1], TupleContext(component, stream, -1, Fields("rate_secs")))
        assert tup.is_tick is is_tick

    def test_tuples_compare_by_identity(self) -> None:
        tup = word_tuple("storm", 1)
        assert tup == tup
        assert tup != word_tuple("storm", 1)
        assert len({tup, word_tuple("storm", 1)}) == 2

    def test_it_is_as_small_as_it_should_be(self) -> None:
        assert Tuple.__slots__ == ("context", "values")
        assert not hasattr(word_tuple("storm", 1), "__dict__")
        assert not hasattr(word_tuple("storm", 1).context, "__dict__")

    def test_repr(self) -> None:
        tup = word_tuple("storm", 1)
        assert repr(tup) == "Tuple(source=split:words[7], values=['storm', 1])"
        assert repr(tup.context) == "TupleContext('split', 'words', 7, Fields('word', 'count'))"
