# Everything a newcomer needs: `make demo` and `make test` set up their own environment.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: env demo test test-untimed lint lock clean

env: $(READY)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))' || \
	  { echo "error: $(PYTHON) is $$($(PYTHON) --version 2>&1), expected Python 3.11 or 3.12"; \
	    echo "hint: make $(MAKECMDGOALS) PYTHON=python3.11"; exit 2; }
	@command -v $${CXX:-g++} >/dev/null || command -v clang++ >/dev/null || \
	  { echo "error: no C++ compiler found"; echo "hint: apt-get install g++"; exit 3; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --requirement requirements.lock
	# Confined processes cannot keep what they compile. pip does it on one core; here all take part.
	# No such process imports what is left out, which is a quarter of the time.
	$(BIN)/python -m compileall -q -j 0 -x '/tests/|/transformers/models/' $(VENV)/lib >/dev/null 2>&1 || true  # some hold code for other Pythons
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $(READY)

demo: env
	$(BIN)/kernel-smith doctor
	mkdir -p build
	$(BIN)/kernel-smith optimize max_pool2d --evaluations 18 --store build/demo.sqlite \
	  --output build/max_pool2d_best.py

# Tests that no other work on the machine disturbs: they run side by side, each worker on a core of its own.
# In this order, long ones first, so that no worker is left with a long file at the end.
UNTIMED := $(addprefix tests/,honest backends faults compile_only proposers service training) \
  $(addprefix tests/engines/test_,choose_engine.py local_engine.py ray_engine.py ray_queue.py same_run.py simulated.py) \
  $(addprefix tests/cli/test_cli_,compile_only.py data.py data_mine.py doctor.py exit_codes.py optimize.py outside.py \
  runs.py seed.py start.py tasks.py train.py) \
  $(wildcard tests/judge/test_device_*.py) \
  $(addprefix tests/judge/test_,large_pool.py admission_of_large.py rows.py accuracy.py \
  accuracy_float8.py admission.py correctness.py description.py fetching.py memory_claims.py mixing.py \
  outcome.py parameters.py pieces.py process_pool.py reference.py buffers.py second_look.py statistics.py \
  input_pool.py twins.py kinds_of_results.py varying.py variation.py modified_code.py waiting.py \
  timed_verifier.py) \
  $(addprefix tests/,trajectories tasks gpu gpu_suite inline interpreter sandbox runs search suite \
  programs nsight mctracer records screen store)

# What a change is judged by must not depend on luck: a plain `pytest` draws other examples each time.
SAME_EXAMPLES := --hypothesis-seed=0

# Linters beside the tests that they do not disturb.
test: env
	$(MAKE) --jobs=2 lint test-untimed
	$(BIN)/python -m pytest $(SAME_EXAMPLES) $(addprefix --ignore=,$(UNTIMED))

test-untimed: env
	$(BIN)/python -m pytest $(SAME_EXAMPLES) -n 2 --dist loadfile --no-loadscope-reorder $(UNTIMED)

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m kernel_smith.records.schema_files --check

# Write down the versions of a working environment. torch comes without its local version label.
lock: env
	$(BIN)/python -m pip freeze --all --exclude-editable | sed 's/+cpu$$//' | \
	  grep -v -i -E '^(pip|ninja)==' > requirements.lock

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
