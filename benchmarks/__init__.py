"""Programs that measure storm-py: `benchmarks.quick`, `benchmarks.suite`, `benchmarks.recovery`.

They see what users see: public names and the command line. Run them as modules, from the top of
the repository: `python -m benchmarks.quick`. Only `benchmarks.cores` looks inside.
"""
