"""What a Java says of its version."""

from __future__ import annotations

import pytest

from storm_py.java import version_in

OPENJDK_17 = """openjdk version "17.0.13" 2024-10-15
OpenJDK Runtime Environment (build 17.0.13+11-Debian-2deb12u1)
OpenJDK 64-Bit Server VM (build 17.0.13+11-Debian-2deb12u1, mixed mode, sharing)
"""


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (OPENJDK_17, 17),
        ('openjdk version "21" 2023-09-19\n', 21),
        ('openjdk version "25-ea" 2025-09-16\n', 25),
        ('java version "1.8.0_392"\nJava(TM) SE Runtime Environment', 8),
        ('java version "9"\n', 9),
        ('openjdk version "11.0.2" 2019-01-15\n', 11),
        (f"Picked up JAVA_TOOL_OPTIONS: -Dx=1\n{OPENJDK_17}", 17),
        ("java 17 2021-09-14 LTS\nversion 17", None),
        ("", None),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
    ],
)
def test_the_version_that_a_java_says(text: str, version: int | None) -> None:
    assert version_in(text) == version
