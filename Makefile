# Everything a developer runs. `make test` and `make demo` create the environment they need.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
INSTALLED_DEMO := $(VENV)/.installed-demo
JOBS ?= 2
TRL_OLDEST := 1.14.0
TRL_NEWEST := 1.16.0

# One thread each: with small models a second OpenMP thread spins on a busy machine and runs collapse.
export OMP_NUM_THREADS := 1
export OMP_WAIT_POLICY := PASSIVE
export MKL_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export NUMBA_NUM_THREADS ?= 2
export TOKENIZERS_PARALLELISM := false
# Nothing is looked up or reported over the network (the TRL telemetry obeys these two).
export HF_HUB_DISABLE_TELEMETRY := 1
export HF_HUB_OFFLINE ?= 1
export DO_NOT_TRACK := 1
export PYTHONUNBUFFERED := 1

FIND_PYTHON = for p in python3.11 python3.12 python3.13 python3; do \
	if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$p; exit 0; fi; \
	done; echo "rollwise needs Python 3.11 or newer on PATH" >&2; exit 1

comma := ,
define install
	@python=$$($(FIND_PYTHON)); echo "installing rollwise[$(1)] into $(VENV) with $$python: a few minutes, without output"; \
	$$python -m venv $(VENV); \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(1)]'
endef

.PHONY: help venv demo test test-slow lint unit wheel compat clean

help: ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

venv: $(INSTALLED) ## create .venv with everything needed to develop

# What is for developing holds what the demo needs, so it counts for both.
$(INSTALLED): pyproject.toml constraints.txt
	$(call install,dev)
	touch $(INSTALLED_DEMO) $@

$(INSTALLED_DEMO): pyproject.toml constraints.txt
	$(call install,train$(comma)report)
	touch $@

demo: $(INSTALLED_DEMO) ## uniform and adaptive allocation side by side on the embedded model (two to three minutes on two cores)
	@echo "training twice from the same model, seed and budget: uniform and adaptive allocation, side by side"
	$(BIN)/rollwise train

test: lint unit wheel ## what CI runs: ruff, mypy, pytest, and the wheel in a bare environment

lint: venv ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

unit: venv ## the tests that are not marked slow
	$(BIN)/python -m pytest -m "not slow" -n $(JOBS) --dist loadfile

test-slow: venv ## the tests that take long or need a download
	HF_HUB_OFFLINE=0 $(BIN)/python -m pytest -m slow

wheel: venv ## build the wheel and use its core with numpy and numba alone
	rm -rf build/wheel build/bare
	$(BIN)/python -m build --wheel --outdir build/wheel . > /dev/null
	$(BIN)/python -m venv build/bare
	build/bare/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt build/wheel/*.whl
	cd build && bare/bin/python ../tests/bare_core.py

compat: ## the TRL integration tests on the oldest and the newest supported TRL
	python=$$($(FIND_PYTHON)); for trl in $(TRL_OLDEST) $(TRL_NEWEST); do \
		env=.compat/trl-$$trl; \
		test -x $$env/bin/pytest || { $$python -m venv $$env; grep -v '^trl==' constraints.txt > $$env/constraints.txt; \
			$$env/bin/python -m pip install --quiet --disable-pip-version-check -c $$env/constraints.txt trl==$$trl -e '.[dev]'; }; \
		echo "trl $$trl"; $$env/bin/python -m pytest tests/integrations/trl -q -m "not slow"; \
	done

clean: ## remove what the targets above created
	rm -rf $(VENV) .compat build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
