# The two commands: `make demo` and `make test`. Both make their own environment in .venv and need
# nothing but Python 3.11 or later with pip and venv.

VENV := .venv
BIN  := $(VENV)/bin
PIP  := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Packages are installed uncompiled: modules are compiled when first imported, and kept, even where the
# environment asks for none to be. Else every process that tests start would compile them all again.
unexport PYTHONDONTWRITEBYTECODE

# The first interpreter that is there, runs and is new enough.
PYTHON ?= $(shell for python in python3.11 python3 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$python && break; done)

.PHONY: help demo test tests test-deep test-versions lint docs docs-serve bench guarantees evidence \
	evidence-peers clean

help:
	@echo 'make demo    install setwise, compare methods on known truth, write report.html'
	@echo 'make test    install, lint, check types and imports, run all tests'
	@echo 'make test-deep   the same tests, with many more examples of each law'
	@echo 'make test-versions  the wheel and the sdist, on each Python, with the oldest and newest of what is needed'
	@echo 'make docs    build the site in docs/_build/html; make docs-serve shows it'
	@echo 'make lint    the checks of make test that run no code'
	@echo 'make bench   measure against torch and record what was computed'
	@echo 'make guarantees  certify every combination, write docs/guarantees.md'
	@echo 'make evidence DATA=folder  compare every method on the data sets of a folder, write docs/evidence.md'
	@echo 'make clean   remove the environment, caches and builds'

demo: $(VENV)/.runtime
	$(BIN)/setwise demo

# Types are checked on one processor while tests run on the others.
test: $(VENV)/.dev
	@$(MAKE) --no-print-directory --jobs=2 lint tests

tests: $(VENV)/.dev
	$(BIN)/python -m pytest --doctest-modules src tests

# Thirty times the examples of each law.
test-deep: lint
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest --doctest-modules src tests

lint: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/lint-imports

# Warnings are errors, broken links too.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -n -W --keep-going -b html docs docs/_build/html

docs-serve: docs
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory docs/_build/html 8000

# (What is tried goes into environments of its own.)
test-versions: | $(BIN)/python
	$(BIN)/python tests/versions.py

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

guarantees: $(VENV)/.dev
	$(BIN)/python -m benchmarks guarantees bounds tightness excess_risk

# What has rows already is not run again. Peers are found in the environments of PEERS.
PEERS := .peers
evidence: $(VENV)/.dev
	$(BIN)/python -m benchmarks.evidence $(if $(DATA),--data $(DATA)) --peers $(PEERS)

evidence-peers: $(VENV)/.dev
	$(BIN)/python -m benchmarks.evidence.environments $(PEERS)

# An empty file records each installation; a changed pyproject.toml makes it old.
$(VENV)/.runtime: pyproject.toml | $(BIN)/python
	$(PIP) --editable .
	@$(PIP) 'xgboost-cpu>=3.0' || echo 'XGBoost was not installed: the demo has no boosted trees'
	@touch $@

# One release of torch, so that ratios taken at different times are ratios to the same thing. Modules
# are compiled when they are imported: most of them never are.
$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(PIP) --no-compile --editable '.[dev,torch,examples]' torch==2.13.0
	@touch $@ $(VENV)/.runtime

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[docs]' torch==2.13.0
	@touch $@

$(BIN)/python:
	@test -n '$(PYTHON)' || { echo 'setwise needs Python 3.11 or later (set PYTHON=...)' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@# (A recent pip resolves in half the time; without one the old will do.)
	@$(PIP) --upgrade pip || true

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis .benchmarks .import_linter_cache
	rm -rf src/setwise/compiled docs/_build docs/api docs/gallery docs/sg_execution_times.rst
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +
