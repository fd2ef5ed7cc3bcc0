# Every target sets up .venv by itself on a fresh machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export OMP_NUM_THREADS ?= 1

.PHONY: venv dev demo report test slow lint bench drill docs parity clean
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

demo: $(VENV)/.core ## LSER's recommender beside linear bandits, about two minutes
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

bench: $(VENV)/.bench ## speed beside the peers, ratios in one run
	$(BIN)/python benchmarks/replay.py
	$(BIN)/python benchmarks/simulators.py
	$(BIN)/python benchmarks/learner.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/fleet.py --device cpu --generated --seconds 8
	$(BIN)/python benchmarks/adapters.py

drill: $(VENV)/.dev ## faults on purpose: kills, damage, forgery, full disks; about ten minutes
	PYTHONPATH=. $(BIN)/python -m drill

docs: $(VENV)/.dev ## the site, warnings as errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -q --strict

parity: $(VENV)/.core ## ours beside the original simulators
	$(BIN)/python -m parity

clean: ## remove what the targets made
	rm -rf $(VENV) .venv-parity site demo runs
