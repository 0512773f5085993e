"""The same word count in other frameworks: one program each, run inside its own environment.

A program imports its framework, the standard library, `benchmarks.text` and `benchmarks.figures`,
nothing else; it checks its counts and prints one line of JSON with `words_s`. Which environment
holds what, and how it is made, is in `benchmarks.environments`.
"""
