"""A disk that is full, for the time of a block: a file that grows over a limit is refused."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator


@contextlib.contextmanager
def little_room(file_bytes: int = 1000) -> Iterator[None]:
    """No file of this process may grow over so many bytes: writing more is an OSError.

    It is the kernel's, "File too large". Hold it in a test's body only: reports of pytest may go to
    a file as well.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
