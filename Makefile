# Everything one does with a checkout. Each target sets up what it needs in .venv, once.

PYTHON ?= python3
# Another PySpark than the one that pyproject.toml names, in an environment of its own:
# make test-slow SPARK=4.2.0 ARGS="tests/clients/test_sql_spark.py".
SPARK ?=
VENV := .venv$(if $(SPARK),-spark-$(SPARK))
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
KAFKA_LIBS := .cache/kafka-4.3.1/libs
# For `make soak`.
MINUTES ?= 10
# How many tests `make test` runs at a time.
JOBS ?= 5
# The same for `make test-cluster`, where each of these processes has three nodes.
CLUSTER_JOBS ?= 2
# And for `make test-slow`, whose tests have more processes of their own.
SLOW_JOBS ?= 3
# Further arguments of pytest, the benchmark or the demo: make test ARGS="-k config -x".
ARGS ?=

# Some machines forbid Python to keep what it compiles. Tests start hundreds of processes, and each
# would compile the product anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test test-cluster test-slow check style types imports audit format bench soak clean

help:
	@echo "make setup   install everything into $(VENV)"
	@echo "make demo    broker, PostgreSQL, connectors, generators, Spark, dashboard and console (SECONDS=60 NODES=3 EXACTLY_ONCE=1 SECURE=1 WAREHOUSE=parquet)"
	@echo "make test    linters, types, and all tests that do not take too long"
	@echo "make test-cluster  clients of the tests' cluster against three nodes, and again with SASL_SSL and ACLs"
	@echo "make check   linters and types alone"
	@echo "make audit   look for known vulnerabilities in what is installed; a part of make check"
	@echo "make format  format the code"
	@echo "make bench   measure beside Apache Kafka"
	@echo "make test-slow     tests that take too long for every run (SPARK=4.2.0: with that PySpark, in .venv-spark-4.2.0)"
	@echo "make soak    random campaigns that last MINUTES=10 in total"
	@echo "make clean   remove everything that these made"

setup: $(INSTALLED)

# Spark is built from its sources, 430 MB of jars: they are not compressed on their way into .venv.
# Nor is what is installed compiled: tests import a sixth of it, and Python keeps what it compiles.
$(INSTALLED): export DIST_EXTRA_CONFIG = $(CURDIR)/tools/wheels.cfg
$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or later is needed: make PYTHON=/path/to/python3.11 setup"; exit 1; }
	@test -x $(BIN)/python || { echo "Creating $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "Installing into $(VENV) (some 600 MB the first time, most of it Spark)"
	$(BIN)/python -m pip install --disable-pip-version-check --no-compile \
		$(if $(MAKE_TERMOUT),--progress-bar on,--quiet) -e '.[dev]'
	$(if $(SPARK),$(BIN)/python -m pip install --disable-pip-version-check --no-compile --quiet pyspark==$(SPARK))
	@touch $@

# Apache Kafka's own jars, which tests compare with and the benchmark runs. Without Maven, or
# without a network, the tests that need them are skipped. Where the list has grown since, they are
# fetched again.
$(KAFKA_LIBS): tools/kafka/pom.xml
	@if command -v mvn >/dev/null; then \
		echo "Fetching Apache Kafka's jars with Maven (some 170 MB, once)"; \
		rm -rf $@.partial; \
		mvn --batch-mode --quiet -f tools/kafka/pom.xml dependency:copy-dependencies \
			-DoutputDirectory=$(CURDIR)/$@.partial \
			&& rm -rf $@ && mv $@.partial $@ && touch $@ \
			|| echo "No jars of Apache Kafka: tests that compare with it are skipped"; \
	else echo "No mvn: tests that compare with Apache Kafka are skipped"; fi

demo: setup
	$(BIN)/barnabas demo $(if $(SECONDS),--seconds $(SECONDS)) $(if $(NODES),--nodes $(NODES)) \
		$(if $(filter-out 0,$(EXACTLY_ONCE)),--exactly-once) \
		$(if $(filter-out 0,$(SECURE)),--secure) $(if $(WAREHOUSE),--warehouse $(WAREHOUSE)) $(ARGS)

BESIDE_EACH_OTHER := $(MAKE) --no-print-directory --jobs 4 --output-sync=target

check: setup
	@$(BESIDE_EACH_OTHER) style types imports audit

style:
	$(BIN)/ruff check
	$(BIN)/ruff format --check --quiet

# Of the product and the tests: pyproject.toml says what is stricter for the product.
types:
	$(BIN)/mypy

# Never fails without a network.
audit: setup
	@$(BIN)/python tools/audit.py

imports:
	$(BIN)/lint-imports

# All of `make check`: types are checked while tests are collected, and tests/checks looks at the
# result. Most tests wait for other programs: five processes use two cores well. tests/conftest.py
# shares the tests out. An archive of Spark's classes would not pay for itself in one run.
test: export BARNABAS_SPARK_ARCHIVES = 0
test: setup
	@$(BESIDE_EACH_OTHER) style imports audit $(KAFKA_LIBS)
	$(BIN)/pytest --processes $(JOBS) $(if $(ARGS),$(ARGS),--begin-types)

# Plain, and then secured: tests/clients/secured_matrix.py lists what takes no part in that.
test-cluster: setup | $(KAFKA_LIBS)
	BARNABAS_TEST_NODES=3 $(BIN)/pytest tests/clients --processes $(CLUSTER_JOBS) $(ARGS)
	BARNABAS_TEST_NODES=3 BARNABAS_TEST_SECURITY=scram \
		$(BIN)/pytest tests/clients --processes $(CLUSTER_JOBS) $(ARGS)

format: setup
	$(BIN)/ruff check --fix --quiet
	$(BIN)/ruff format --quiet

bench: setup
	$(BIN)/python -m bench $(ARGS)

# Most slow tests wait too. Those that need the machine for themselves come after them, one at a time.
# With ARGS there may be none of either kind, for which pytest exits with 5.
SLOW := $(BIN)/pytest --timeout=1800
test-slow: setup | $(KAFKA_LIBS)
	$(SLOW) -m "slow and not alone" --processes $(SLOW_JOBS) $(ARGS) || test $$? -eq 5
	$(SLOW) -m "slow and alone" $(ARGS) || test $$? -eq 5
	EFFORT=16 $(SLOW) tests/sim tests/property --processes $(SLOW_JOBS)
	EFFORT=16 $(SLOW) tests/unit -m "hypothesis and not slow" --processes $(SLOW_JOBS)

soak: setup | $(KAFKA_LIBS)
	MINUTES=$(MINUTES) $(BIN)/pytest -m soak --timeout=0 $(ARGS)

clean:
	rm -rf .venv .venv-spark-* .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	rm -rf build dist spark-warehouse metastore_db derby.log bench/results/raw
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
