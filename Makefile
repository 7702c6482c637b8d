# One virtual environment in .venv; `make test` needs only Python, `make ci` also the package registries.
.PHONY: test lint ci bench record expected mutants clean

test: .venv/ready
	.venv/bin/python -m pytest

lint: .venv/ready
	.venv/bin/ruff check
	.venv/bin/mypy

ci:
	bash .ci/run

# The table of README.md, "Speed": many minutes, more with BENCH=--large
bench: .venv/ready
	.venv/bin/python -m tests.benchmarks $(BENCH)

# make record CASES="v0-tools v4-tools": run these cases on the real runtimes again
record: .venv/ready
	.venv/bin/python -m tests.harness.record $(CASES)

# make expected CASES="v0-tools": write golden/<case>/expected/ again from what is printed now (all cases without CASES)
expected: .venv/ready
	.venv/bin/python -m tests.expected --update $(CASES)

# make mutants ARGS="--seed 7 --count 20": which one-token changes of the engine does no test notice (about 10 minutes)
mutants: .venv/ready
	.venv/bin/python -m tests.mutation $(ARGS)

.venv/ready: pyproject.toml
	python3 -m venv .venv
	.venv/bin/python -m pip install --quiet -e '.[test]'
	touch $@

clean:
	rm -rf .venv dist build

fuzz: .venv/ready
	DSH_AUDIT_FUZZ_ROUNDS=2000 .venv/bin/python -m pytest -q tests/fuzz
