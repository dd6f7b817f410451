# Everything a newcomer needs: `make demo` and `make test` set up their own environment.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Compiled Python is kept, whatever the shell says: hundreds of processes would compile the same files again.
export PYTHONDONTWRITEBYTECODE :=

# What confined processes import, who cannot keep what they compile. All others compile what they need, once.
CONFINED := jinja2 markupsafe mpmath networkx numpy setuptools sympy torch torchgen triton
NOT_IMPORTED := /tests/|/torch/(onnx|testing)/

.PHONY: env demo test test-untimed test-all check test-quick lint docs lock clean

env: $(READY)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))' || \
	  { echo "error: $(PYTHON) is $$($(PYTHON) --version 2>&1), expected Python 3.11 or 3.12"; \
	    echo "hint: make $(MAKECMDGOALS) PYTHON=python3.11"; exit 2; }
	@command -v $${CXX:-g++} >/dev/null || command -v clang++ >/dev/null || \
	  { echo "error: no C++ compiler found"; echo "hint: apt-get install g++"; exit 3; }
	$(PYTHON) -m venv $(VENV)
	# An old pip takes three times as long to read the index, but does as well.
	$(BIN)/python -m pip install --quiet --no-compile 'pip>=26' || true
	# Three processes share the work; then whatever else a PyTorch for this machine needs.
	split --number=r/3 requirements.lock $(VENV)/lock.
	ls $(VENV)/lock.* | xargs -P 3 -n 1 $(BIN)/python -m pip install --quiet --no-compile --no-deps --requirement
	$(BIN)/python -m pip install --quiet --no-compile --requirement requirements.lock
	cd $(VENV)/lib/python*/site-packages && ../../../bin/python -m compileall -q -j 0 -x '$(NOT_IMPORTED)' $(CONFINED) \
	  >/dev/null 2>&1 || true  # some hold code for other Pythons
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $(READY)

demo: env
	$(BIN)/kernel-smith doctor
	mkdir -p build
	@# There is something to see also where nothing was shown to be faster, which is the answer then.
	$(BIN)/kernel-smith optimize causal_conv1d_silu --evaluations 18 --store build/demo.sqlite \
	  --output build/causal_conv1d_silu_best.py; answer=$$?; \
	$(BIN)/kernel-smith report latest --quiet --store build/demo.sqlite --output build/demo.html; \
	echo "to run these commands: source $(BIN)/activate"; exit $$answer

# Two workers have a core of their own, the third uses what they leave: tests wait a third of the time, for processes to
# start and for limits. A fourth made it no shorter. Files stay together, in the order that tests/conftest.py gives them.
SIDE_BY_SIDE := -n 3 --dist loadfile --no-loadscope-reorder

# What a change is judged by must not depend on luck: a plain `pytest` draws other examples each time, and more.
SAME_EXAMPLES := --hypothesis-seed=0 --hypothesis-profile=few

# Linters beside the tests that they do not disturb.
test: env
	$(MAKE) --jobs=2 lint test-untimed
	$(BIN)/python -m pytest $(SAME_EXAMPLES) -m timing $$(grep -rl --include='test_*.py' mark.timing tests)

test-untimed: env
	$(BIN)/python -m pytest $(SAME_EXAMPLES) $(SIDE_BY_SIDE) -m "not timing and not sweep"

# With all of what `make test` takes one of each kind of.
test-all: test
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "sweep and not timing"

# For the inner loop: all but what takes more than about two seconds.
check: env
	$(MAKE) --jobs=2 lint test-quick

test-quick: env
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "not timing and not slow and not sweep"

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m kernel_smith.records.schema_files --check
	$(BIN)/python docs/make --check

# The documentation as a site, which needs no network: build/site/index.html. A broken link is an error.
docs: env
	$(BIN)/python docs/make
	$(BIN)/python -m sphinx -q -W --keep-going -n -c docs/make . build/site

# Write down the versions of a working environment. torch comes without its local version label.
lock: env
	$(BIN)/python -m pip freeze --all --exclude-editable | sed 's/+cpu$$//' | \
	  grep -v -i -E '^(pip|ninja)==' > requirements.lock

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
