# Two commands on a fresh machine: `make audit` runs the main job offline, `make test` passes all tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

.PHONY: audit test test-all lint types bench clean

audit: $(READY)
	$(BIN)/pytest audits/ -m replay --fusion-run-id=other-tools --fusion-import=fixtures/other_tools -q
	$(BIN)/pytest audits/ -m replay --fusion-run-id=fictitious-demo --fusion-import=fixtures/recorded --json-report

test: $(READY)
	$(BIN)/pytest -n 2 --doctest-modules -m "not deep and not real" --ignore=pytest_fusion_audit/audits tests pytest_fusion_audit

test-all: $(READY)
	$(BIN)/pytest -n 2 --doctest-modules --ignore=pytest_fusion_audit/audits tests pytest_fusion_audit

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

bench: $(READY)
	for script in bench/*.py; do $(BIN)/python $$script || exit 1; done

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	$(BIN)/python -m compileall -q pytest_fusion_audit
	touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
