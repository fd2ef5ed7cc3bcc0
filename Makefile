# Every target sets up .venv by itself on a fresh machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OLDEST := .venv-oldest
OLD_EXTRAS := index,tensorboard,sb3,online,postgres
OLD_TESTS := tests/test_oldest.py tests/test_public_api.py tests/training tests/cli/test_cli.py \
	tests/adapters/test_sb3.py tests/online/test_service.py
export OMP_NUM_THREADS ?= 1

.PHONY: venv dev demo report test slow oldest lint bench drill docs parity clean
.DEFAULT_GOAL := help

help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "make %-8s %s\n", $$1, $$2}'

$(VENV)/.core: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -c constraints.txt -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(BIN)/pip install -q -c constraints.txt -e '.[dev]'
	@touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/pip install -q -c constraints.txt -e '.[dev,bench]'
	@touch $@

venv: $(VENV)/.core ## the environment that users need

dev: $(VENV)/.dev ## the environment that developers need

demo: $(VENV)/.core ## LSER's recommender beside linear bandits, about three minutes
	$(BIN)/lser demo

report: $(VENV)/.core ## draw the committed records: results/report/index.html
	$(BIN)/python results/build.py

lint: $(VENV)/.dev ## formatting, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

test: lint ## lint, types and tests
	$(BIN)/pytest -n auto --dist worksteal -m "not slow"

slow: $(VENV)/.dev ## the tests that take long: whole studies, examples, the wheel
	$(BIN)/pytest -n auto --dist worksteal -m slow

$(OLDEST)/.done: pyproject.toml constraints-oldest.txt
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/pip install -q -c constraints-oldest.txt -e '.[$(OLD_EXTRAS)]' pytest pytest-xdist hypothesis
	@touch $@

oldest: $(OLDEST)/.done ## a part of the tests with the oldest versions that are allowed
	LSER_OLDEST=1 NUMBA_CACHE_DIR=$(OLDEST)/numba $(OLDEST)/bin/pytest -p no:anyio -W default -n auto -m "not slow and not browser" $(OLD_TESTS)

bench: $(VENV)/.bench ## speed beside the peers, ratios in one run; a target that is missed does not stop it
	-$(BIN)/python benchmarks/replay.py
	-$(BIN)/python benchmarks/simulators.py
	-$(BIN)/python benchmarks/learner.py
	-$(BIN)/python benchmarks/training.py
	-$(BIN)/python benchmarks/fleet.py --device cpu --generated --seconds 8
	-$(BIN)/python benchmarks/adapters.py
	-$(BIN)/python benchmarks/rllib.py
	-$(BIN)/python benchmarks/shards.py

drill: $(VENV)/.dev ## faults on purpose: kills, damage, forgery, full disks, the online service; about ten minutes
	PYTHONPATH=. $(BIN)/python -m drill

docs: $(VENV)/.dev ## the site, warnings as errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -q --strict

parity: $(VENV)/.core ## ours beside the original simulators
	$(BIN)/python -m parity

clean: ## remove what the targets made
	rm -rf $(VENV) $(OLDEST) .venv-parity .venv-reverb site demo runs
