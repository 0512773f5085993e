# "make" or "make help" lists the targets. Needs: make, git, and Python >= 3.11 with its venv module.

PYTHON ?= python3
ARGS ?=
# Ways to run the same topologies, see tests/variants.py.
VARIANTS ?= fused unfused

VENV := .venv
# The variable spares old pips a warning about how pyspark is built; newer ones always do it that way.
PIP := PIP_USE_PEP517=1 $(VENV)/bin/python -m pip --disable-pip-version-check --quiet
PYTEST := $(VENV)/bin/python -m pytest

.DEFAULT_GOAL := help
.NOTPARALLEL:  # two pips in one environment would fall over each other
.PHONY: help run test check test-slow test-variants bench bench-quick venv clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo 'Each target sets up what it needs in $(VENV) first. Another Python: make clean run PYTHON=python3.12'

run: $(VENV)/.run  ## count two million words over two worker processes and verify the result
	$(VENV)/bin/storm-py local topologies/word_count.py --workers 2 -- --verify --at-least 2000000

test: $(VENV)/.test  ## every test except the slow ones
	$(PYTEST) -m 'not slow' $(ARGS)

check: $(VENV)/.dev  ## lint, format, types, layers and unit tests: run before each commit
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	$(VENV)/bin/mypy tests $(wildcard benchmarks)
	$(PYTEST) -n auto -m 'not slow' tests/unit tests/test_layers.py tests/test_layout.py tests/test_public_api.py \
	    tests/test_references.py $(ARGS)

test-slow: $(VENV)/.test  ## the slow tests: long runs, many seeds
	@echo "$(PYTEST) -m slow $(ARGS)"; $(PYTEST) -m slow $(ARGS) || { \
	    status=$$?; test $$status -eq 5 || exit $$status; \
	    echo 'no slow tests were selected: nothing to run'; }  # 5 is how pytest says so

test-variants: $(VENV)/.test  ## the suites of data and deaths, fused and unfused; VARIANTS=fused for one
	for variant in $(VARIANTS); do \
	    $(PYTEST) -m 'variants and not slow' --variant $$variant $(ARGS) || exit $$?; done

bench-quick: $(VENV)/.run  ## word count throughput in less than a minute; options in ARGS
	$(VENV)/bin/python -m benchmarks.quick $(ARGS)

bench: $(VENV)/.run  ## all that is measured, beside other frameworks; takes about an hour
	$(VENV)/bin/python -m benchmarks.suite $(ARGS)

venv: $(VENV)/.dev  ## only set up the environment, with everything for development

clean:  ## remove the environment, caches and build results
	rm -rf $(VENV) build dist *.egg-info .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment. One stamp file per set of dependencies; a larger set satisfies the smaller ones.

$(VENV)/.run: setup.cfg pyproject.toml | $(VENV)/.made
	@echo 'installing what storm-py needs to run in $(VENV) (about 650 MB, mostly pyspark; once)'
	@$(PIP) install --editable .
	@touch $@

$(VENV)/.test: setup.cfg pyproject.toml | $(VENV)/.made
	@echo 'installing what storm-py and its tests need in $(VENV) (about 900 MB, half of it pyspark; once)'
	@$(PIP) install --editable '.[test]'
	@touch $(VENV)/.run $@

$(VENV)/.dev: setup.cfg pyproject.toml | $(VENV)/.made
	@echo 'installing what development of storm-py needs in $(VENV) (about 1 GB, half of it pyspark; once)'
	@$(PIP) install --editable '.[test,dev]'
	@touch $(VENV)/.run $(VENV)/.test $@

$(VENV)/.made:
	@command -v '$(PYTHON)' >/dev/null || { \
	    echo "error: no '$(PYTHON)' here: install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3"; \
	    exit 1; } >&2
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "error: '$(PYTHON)' is $$('$(PYTHON)' --version 2>&1), but storm-py needs 3.11 or newer;" \
	        "name another one: make PYTHON=/path/to/python3"; exit 1; } >&2
	@'$(PYTHON)' -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo "error: '$(PYTHON)' has no venv module; on Debian and Ubuntu: apt install python3-venv"; \
	    exit 1; } >&2
	@'$(PYTHON)' -m venv $(VENV)
	@touch $@
