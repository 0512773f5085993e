"""Spouts that are ready to use: sources that replay what failed and survive their own death.

They are written against the public names of `storm_py` alone, as a user's are.
"""

from __future__ import annotations

from .file import FileSpout

__all__ = ["FileSpout"]
