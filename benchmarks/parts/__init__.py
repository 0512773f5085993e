"""The parts of the suite: each a function from `Options` to a `Part`, called by its name."""
