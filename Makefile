# Trickle. The two that matter: make demo, make test.

TRICKLE_VENV ?= .venv
PYTHON ?=
BIN := $(TRICKLE_VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help env demo test lint fuzz mutants faults bench bench-compare screenshots clean

help:
	@echo 'make demo             a shop that keeps changing, its stream tables, the dashboard on top'
	@echo 'make demo CHECK=1     the same without a screen: refreshes, verifies, prints, exits 0 or 1'
	@echo 'make test             lint, format, types and every test (ARGS="…" goes to pytest)'
	@echo 'make fuzz N=100000    random views against recompute (ONLY="joins,windows", WITHOUT="…", SEED=…, P=processes)'
	@echo 'make mutants          breaks each rule of maintenance in turn: docs/mutants (new ones only; AGAIN=1: missed ones too)'
	@echo 'make faults           kills, races and meddling by the thousand: docs/faults (an hour and a half)'
	@echo 'make bench            the numbers, as a table and bench/results/latest.json (ten minutes)'
	@echo 'make bench FULL=1     all sizes and changes, TPC-H at scale 1 (an hour; SCALE=10 for more)'
	@echo 'make bench-compare SAVED=bench/results/NAME.json     what got worse than in a saved run'
	@echo 'make lint             lint, format and types only'
	@echo 'make screenshots      pictures of the demo workspace for the README'
	@echo 'make clean            removes the environment, the demo workspace and caches'

# Makes or mends the environment; costs a checksum when there is nothing to do.
env:
	@sh scripts/environment.sh '$(TRICKLE_VENV)' '$(PYTHON)'

demo: env
	@'$(BIN)/trickle' demo --dir .demo $(if $(CHECK),--check) $(if $(REFRESHES),--refreshes $(REFRESHES))

test: env
	@sh scripts/checks.sh '$(BIN)' all $(ARGS)

lint: env
	@sh scripts/checks.sh '$(BIN)' static

N ?= 10000
SEED ?= 0
P ?= 2
fuzz: env
	@'$(BIN)/python' -m tests.properties.fuzz --cases $(N) --seed $(SEED) --processes $(P) \
		--only '$(ONLY)' --without '$(WITHOUT)' $(if $(WRITE),--write '$(WRITE)')

mutants: env
	@'$(BIN)/python' -m tests.mutants --record --without lower --processes $(P) $(if $(AGAIN),--again)

faults: env
	@'$(BIN)/python' -m tests.faults real
	@'$(BIN)/python' -m tests.faults simulated

bench: env
	@'$(BIN)/python' -m bench $(if $(FULL),--full) $(if $(SCALE),--scale $(SCALE))

bench-compare: env
	@'$(BIN)/python' -m bench.compare '$(SAVED)'

screenshots: env
	@'$(BIN)/python' -m trickle_tui.screenshots .demo screenshots

clean:
	rm -rf .demo .mypy_cache .pytest_cache .ruff_cache spark-warehouse
	find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +
	@[ ! -f '$(TRICKLE_VENV)/.trickle-stamp' ] || rm -rf '$(TRICKLE_VENV)'
