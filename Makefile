# Two commands do all the set-up on a machine with Python 3.11 to 3.13 and make:
#   make demo    install into .venv, fit a built-in table, say where the report is
#   make test    everything CI checks; make test-all adds what takes longer than a few seconds
# and for the inner loop: make check, make docs, make bench.

PYTHON ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11,$(shell \
	$(p) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null && echo $(p))))
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
WORKERS ?= 2
# One thread per pytest worker: more make small tensor programs slower, and waiting ones spin.
PYTEST := OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

MKDOCS := OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir site

.DEFAULT_GOAL := help
.PHONY: help install dev demo lint types check test test-all pages docs bench clean

help:
	@sed -n '2,4s/^# *//p' Makefile

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "groundstate needs Python 3.11, 3.12 or 3.13 on the PATH; install one, or name it: make PYTHON=/path/to/python3.11"; exit 2; }
	@echo "creating $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV)

# Stamps: the installation is repeated only when what is installed has changed.
$(VENV)/.core: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing groundstate and its dependencies (the first time takes a few minutes)"
	@$(PIP) --editable '.[tune]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing groundstate with its development tools (the first time takes a few minutes)"
	@$(PIP) --editable '.[dev]'
	@touch $(VENV)/.core $@

install: $(VENV)/.core
dev: $(VENV)/.dev

demo: $(VENV)/.core
	$(BIN)/groundstate fit iris --target target

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy --strict src

check: lint types
	$(PYTEST) -m "not slow" tests

test: lint
	@$(MAKE) --no-print-directory --jobs 2 types pages
	$(PYTEST) -m "not slow" --doctest-modules src tests

test-all: lint
	@$(MAKE) --no-print-directory --jobs 2 types pages
	$(PYTEST) --doctest-modules src tests

pages: $(VENV)/.dev
	$(MKDOCS) --quiet

docs: $(VENV)/.dev
	$(MKDOCS)

$(VENV)/.bench: pyproject.toml constraints.txt $(VENV)/.dev
	@echo "installing the packages that benchmarks compare with"
	@$(PIP) --editable '.[dev,bench]'
	@touch $@

bench: $(VENV)/.bench
	$(BIN)/groundstate bench --all

clean:
	rm -rf site build src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
