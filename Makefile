# Plaza on one machine. `make help` lists what there is.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(shell command -v python3.11 || command -v python3)
DEMO ?= 1
WORKERS ?= 3
PORT ?= 0
ARGS ?=

READY := .venv/.ready .venv-tools/.ready .venv-lambda/.ready

export SAM_CLI_TELEMETRY := 0

##@ Use

.PHONY: run
run: setup ## start all of it, play a small crowd, stay up (DEMO=0: no crowd, PORT=8000: that port)
	@exec .venv/bin/python -m local up --port $(PORT) $(if $(filter 0,$(DEMO)),--no-demo)

.PHONY: down
down: .venv/.ready ## stop what runs
	@.venv/bin/python -m local down

.PHONY: status
status: .venv/.ready ## what runs, and what waits in the queues
	@.venv/bin/python -m local status

.PHONY: audit
audit: .venv/.ready ## the audit report: Redis total = MySQL counter = rows
	@.venv/bin/python -m local audit $(ARGS)

##@ Develop

.PHONY: setup
setup: ## everything the other commands need; quick when nothing changed
	@$(MAKE) --no-print-directory --jobs=3 $(READY)
	@.venv/bin/python -m local packages

.PHONY: test
test: setup ## the suite: unit, on real servers, model, end to end (ARGS="-k like -x": some of it)
	@.venv/bin/python $(if $(ARGS),-m pytest $(ARGS),-m slipcover -m pytest --numprocesses $(WORKERS) \
	  --no-loadscope-reorder --ignore tests/cluster --durations 10)
	@$(if $(ARGS),,.venv/bin/python -m tests.support.coverage)

.PHONY: test-unit
test-unit: .venv/.ready ## the tests that need no server
	@.venv/bin/python -m pytest tests/unit $(ARGS)

.PHONY: test-cluster
test-cluster: setup ## the tests on real servers and the model, with a Redis Cluster; failovers
	@PLAZA_TEST_REDIS=cluster .venv/bin/python -m pytest -r s \
	  $(if $(ARGS),$(ARGS),--numprocesses $(WORKERS) --no-loadscope-reorder \
	  tests/integration tests/model tests/cluster)

.PHONY: coverage
coverage: .venv/.ready ## the lines of the layer that the last make test did not reach
	@.venv/bin/python -m tests.support.coverage --missing

.PHONY: check
check: .venv/.ready .venv-tools/.ready ## format, lint, types, policy tests: what CI runs first
	@.venv/bin/ruff format --check .
	@.venv/bin/ruff check .
	@.venv/bin/mypy
	@.venv/bin/python -m pytest -q tests/unit/policy

.PHONY: format
format: .venv/.ready ## put the code into its one format
	@.venv/bin/ruff check --fix .
	@.venv/bin/ruff format .

.PHONY: bench
bench: setup ## what is fast, each figure beside its limit or peer
	@.venv/bin/python -m bench $(ARGS)

.PHONY: chaos
chaos: setup ## the failure matrix on a stack of its own, into docs/failures.md (ARGS="redis-down": only that; ARGS="pairs": two at a time)
	@.venv/bin/python -m tests.chaos $(ARGS)

.PHONY: faults
faults: setup ## lose the reply of every outgoing call of every use case (ARGS="--mode killed --minutes 10")
	@.venv/bin/python -m tests.faults $(ARGS)

.PHONY: soak
soak: setup ## hours of use in minutes: is memory flat, is the audit clean? (ARGS="--minutes 20")
	@.venv/bin/python -m local soak $(ARGS)

.PHONY: contract
contract: .venv/.ready ## write the contract, functions/api/system/openapi.json, from the routes
	@.venv/bin/python -m local.stack.openapi

.PHONY: alarms
alarms: .venv/.ready ## write alarms.json, which the template includes, from alarms.yaml
	@.venv/bin/python -m local.stack.alarms

.PHONY: lock
lock: .venv-lock/.ready ## lock what pyproject.toml asks for, with hashes (ARGS=--upgrade: the newest of all)
	@.venv-lock/bin/python -m local.stack.lock $(ARGS)

.PHONY: validate
validate: .venv/.ready .venv-tools/.ready ## sam validate --lint: the template, and what it is with its alarms
	@mkdir -p .aws-sam
	@.venv/bin/python -m local.stack.alarms expand > .aws-sam/expanded.yaml
	@.venv-tools/bin/sam validate --lint --region us-east-1
	@.venv-tools/bin/sam validate --lint --region us-east-1 --template-file .aws-sam/expanded.yaml

.PHONY: build
build: .venv-tools/.ready .venv-lambda/.ready ## sam build, as for AWS, and bytecode into the layer
	@PATH="$(CURDIR)/.venv-tools/bin:$$PATH" .venv-tools/bin/sam build
	@.venv-lambda/bin/python -m local.stack.bytecode

.PHONY: layer-size
layer-size: build ## what the layer weighs, unzipped (limit: 25 MB)
	@find .aws-sam/build/CommonLayer -type f -printf '%s\n' | \
	  awk '{ sum += $$1 } END { printf "%.1f MB of 25\n", sum / 1e6; exit sum > 25e6 }'

.PHONY: clean
clean: ## forget every environment, build and stack (stops what runs)
	@if [ -x .venv/bin/python ]; then .venv/bin/python -m local down; fi
	@rm -rf .venv .venv-tools .venv-lambda .venv-lock .coverage.json .local .local-test .aws-sam .mypy_cache .ruff_cache .pytest_cache .hypothesis

.PHONY: help
help: ## this list
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@/ { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo

# One environment each for what we develop with, what builds and deploys, what Lambda has, what locks.

.venv/.ready: requirements/dev.txt
	@$(call make_environment,.venv,requirements/dev.txt,.)

.venv-tools/.ready: requirements/tools.txt
	@$(call make_environment,.venv-tools,requirements/tools.txt)

.venv-lambda/.ready: requirements/lambda.txt
	@$(call make_environment,.venv-lambda,requirements/lambda.txt)

.venv-lock/.ready: requirements/lock.txt
	@$(call make_environment,.venv-lock,requirements/lock.txt)

define make_environment
PYTHON="$(PYTHON)" local/stack/make_environment $(1) $(2) $(3)
endef
