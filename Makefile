# What CONTRIBUTING.md describes. Each target uses .venv, and makes it where it is missing.
.PHONY: check fast test drills shots pyz bench

BIN := .venv/bin

# Ruff, the format, the types and the import contracts (about 30 s with a cold cache).
check: $(BIN)/pytest
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --strict
	$(BIN)/lint-imports

# Quick tests of each package, in less than a minute.
fast: $(BIN)/pytest
	$(BIN)/pytest -m fast -n 2

# The suite as the README starts it, in about 5 minutes on two cores.
test: $(BIN)/pytest
	$(BIN)/pytest -n 4 --dist loadfile

# All tests, also the drills of tests/drills.py, in about half an hour.
drills: $(BIN)/pytest
	$(BIN)/pytest --drills -n 4 --dist loadfile

# Every picture in screenshots/.
shots: $(BIN)/pytest
	$(BIN)/python -m screenshots.make
	$(BIN)/python -m screenshots.moving

# The core, the command line and `run` in one file, dist/dibs.pyz.
pyz: $(BIN)/pytest
	$(BIN)/python -m one_file

# The benchmarks in a short form: it prints the figures and writes no file.
bench: $(BIN)/pytest
	$(BIN)/python -m tests.bench --quick

$(BIN)/pytest:
	python3 -m venv .venv && .venv/bin/pip install -q -e '.[dev]'
