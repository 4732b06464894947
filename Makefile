# `make demo` and `make test` need python3 (3.11 or later) and make; everything else is installed into .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check -q
# Workers of pytest share the cores, so each of them gets one thread.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest
unexport PYTHONDONTWRITEBYTECODE  # hundreds of processes import the same modules: compile them once

.PHONY: demo quick test check lint types layers doctests docs tests coverage bench mutants paper clean help

help:            ## what can be made
	@grep -E '^[a-z]+: .*##|^[a-z]+:  +##' Makefile | sed -E 's/:[^#]*##/ -/'

demo: $(VENV)/.core           ## the main job, with a report at the end
	$(BIN)/taciturn demo

quick: $(VENV)/.test          ## what one runs while working: under a minute; no process, no cluster, nothing slow
	$(PYTEST) -n 2 --dist worksteal -m "not process and not ray and not slow" tests

test: check tests             ## every check and every test

check: $(VENV)/.test          ## ruff, mypy strict, import-linter, doctests, the docs: two at a time
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target types doctests docs lint layers

lint: $(VENV)/.test
	$(BIN)/ruff check src tests benchmarks examples tools
	$(BIN)/ruff format --check src tests benchmarks examples tools
	$(BIN)/python -m tools.wordlist

types: $(VENV)/.test
	$(BIN)/mypy

layers: $(VENV)/.test
	$(BIN)/lint-imports

doctests: $(VENV)/.test
	$(PYTEST) --doctest-modules src/taciturn

docs: $(VENV)/.test           ## the site, into build/site; strict, and without the network
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

tests: $(VENV)/.test
	$(PYTEST) -n 4 --dist worksteal tests

coverage: $(VENV)/.test       ## which lines no quick test runs; the pages are in build/coverage
	$(PYTEST) -n 4 -m "not process and not ray" --cov=taciturn --cov-report=html:build/coverage --cov-report=term:skip-covered tests

bench: $(VENV)/.test          ## speed, as ratios within one run; writes docs/performance.md
	$(BIN)/python -m benchmarks.speed

mutants: $(VENV)/.test        ## plant small faults in what promises rest on; lists those that no test sees; minutes
	$(BIN)/python -m tools.mutants

paper: $(VENV)/.core          ## the paper's figures and claims; writes docs/paper.md and docs/img
	$(BIN)/taciturn reproduce all --out build/paper --docs docs

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "taciturn needs Python 3.11 or later")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e .
	@touch $@

$(VENV)/.test: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e '.[docs,tables,sql,test,ray,zenoh]'
	@touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
