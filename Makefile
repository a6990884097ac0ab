# Everything runs in .venv, which each target that needs it sets up by itself, once. `run` needs less
# than the others, so that a first look does not wait for Spark.

PYTHON   ?= python3
SCENARIO ?= scenarios/harmony.toml
SECONDS  ?=
WORKERS  ?= 4

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.complete
BASIC := $(VENV)/.basic
PIP   := $(BIN)/python -m pip --disable-pip-version-check -qq

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup native run test test-native lint reproduce bench lock clean

help: ## show this list
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

setup: $(STAMP) ## install everything into .venv (every other target does this itself)

# Stamps are written last, so an interrupted set-up starts again the next time.
$(BASIC): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "Tidings needs Python 3.11 or newer, but '$(PYTHON)' is" \
	         "$$($(PYTHON) --version 2>&1 || true). Name another: make PYTHON=python3.11" >&2; \
	    exit 1; }
	@echo "Setting up $(VENV) for brokers and the simulator (the first time downloads about 80 MB) ..."
	@rm -f $@
	@$(PYTHON) -m venv $(VENV) || { \
	    echo "'$(PYTHON) -m venv' failed; on Debian and Ubuntu the package is python3-venv." >&2; \
	    exit 1; }
	@$(PIP) install -c requirements.lock setuptools
	@$(PIP) install -c requirements.lock --no-build-isolation -e .
	@touch $@

$(STAMP): $(BASIC)
	@echo "Adding all else to $(VENV) (the first time downloads about 570 MB, Spark above all) ..."
	@rm -f $@
	@$(PIP) install -r requirements.lock
	@echo "Keeping Spark's classes ready, so that it starts faster (a minute, 190 MB) ..."
	@$(BIN)/python -m tidings.pipeline.class_archive_maker || true
	@touch $@

run: $(BASIC) ## a live overlay on this machine, until Ctrl-C [SECONDS=20] [SCENARIO=scenarios/harmony.toml]
	@$(BIN)/tidings up "$(SCENARIO)" $(if $(SECONDS),--seconds $(SECONDS),--forever)

# Most tests wait, so there are more workers than cores; see tests/support/lanes.py. Tests that compare
# real delays run after all others and two at a time, which leaves a processor free most of the time.
# Pytest's 5 means that none was found. Modules stay compiled even where the environment asks not to
# keep them: hundreds of processes start here, and each would compile half of the package again.
test: export PYTHONDONTWRITEBYTECODE :=
test: export TIDINGS_NATIVE := 0
test: $(STAMP) ## run all tests [WORKERS=4] [ARGS="-k word"]
	@failed=0; \
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadscope -m "not timing" $(ARGS) || failed=$$?; \
	$(BIN)/python -m pytest -q -n 2 --dist loadscope -m timing $(ARGS) || { code=$$?; test $$code -eq 5 || failed=$$code; }; \
	exit $$failed

# What is compiled, and what shows that it does the same. Tests that reach into modules to replace
# something need the source.
NATIVE_TESTS := tests/broker tests/client tests/core tests/determinism tests/faults tests/linking tests/live \
    tests/mqtt tests/parity tests/properties tests/routing tests/scheduling tests/sim tests/pipeline/sweep/test_cluster.py \
    tests/test_compiled_wheel.py

native: export TIDINGS_NATIVE := 0
native: $(STAMP) ## compile what every message goes through, which is faster; needs a C compiler
	@$(BIN)/python native/build.py

test-native: native ## compile, then run with it the tests of what was compiled
	@TIDINGS_NATIVE=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadscope -m "not timing" $(NATIVE_TESTS) $(ARGS)

lint: $(STAMP) ## check style, types and the direction of imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy --strict src
	@$(BIN)/lint-imports --no-logo

reproduce: $(STAMP) ## sweep the 20-broker mesh over strategies and failures, print the table
	@$(BIN)/tidings sweep studies/mesh20.toml

bench: $(STAMP) ## run every benchmark [ARGS=--quick]
	@set -e; for script in bench/[a-z]*.py; do echo "== $$script"; $(BIN)/python "$$script" $(ARGS); done

lock: ## rebuild requirements.lock from pyproject.toml in a fresh environment
	@rm -rf build/lock
	@$(PYTHON) -m venv build/lock
	@build/lock/bin/python -m pip -qq install ".[dev]"
	@{ sed -n '/^#/p' requirements.lock; \
	   build/lock/bin/python -m pip freeze --all | grep -v -E '^(pip==|tidings )'; } > build/new.lock
	@mv build/new.lock requirements.lock
	@rm -rf build/lock

clean: ## remove the environment, caches and builds; results/ and traces/ stay
	rm -rf $(VENV) build dist src/*.egg-info .hypothesis .import_linter_cache .mypy_cache \
	    .pytest_cache .ruff_cache artifacts spark-warehouse metastore_db derby.log
	find src tests bench -type d -name __pycache__ -prune -exec rm -rf {} +
