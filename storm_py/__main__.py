"""``python -m storm_py`` is the command line; everything is in ``storm_py.cli``."""

from __future__ import annotations

from .cli import main

if __name__ == "__main__":
    main()
