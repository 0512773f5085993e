"""Which display fits: no moving table for a pipe, nor beside a debugger."""

from __future__ import annotations

import sys

import pytest

from storm_py.cli.display import Display, LiveDisplay, PlainDisplay, choose


class TestChoice:
    @pytest.fixture
    def terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)

    def chosen(self, inline: bool) -> type[Display]:
        return type(choose(inline))

    def test_terminal(self, terminal: None) -> None:
        assert self.chosen(inline=False) is LiveDisplay

    def test_debugger(self, terminal: None) -> None:
        assert self.chosen(inline=True) is PlainDisplay

    def test_pipe(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FORCE_COLOR", "1")  # colours, perhaps; but no cursor to move
        monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
        assert self.chosen(inline=False) is PlainDisplay

    def test_dumb_terminal(self, terminal: None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TERM", "dumb")
        assert self.chosen(inline=False) is PlainDisplay
