# Plaza on one machine. `make help` lists the commands.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Of the functions (template.yaml) and of all environments. PYTHON=/path/to/python: this interpreter.
PYTHON_VERSION ?= $(shell cat .python-version)
PYTHON ?=
DEMO ?= 1
WORKERS ?=
PORT ?= 0
RUNS ?= 900
ARGS ?=

ENV ?=
COMMAND ?=
# directory of the local stack that `make operate` uses
PLAZA_DIR ?=
ARCHITECTURE ?= arm64

READY := .venv/.ready .venv-tools/.ready .venv-lambda/.ready
# npm packages of tests and builds. Lighthouse, which is larger, is installed by `make lighthouse`.
WORKSPACES := --include-workspace-root --workspace plaza-client --workspace plaza-app --workspace plaza-console
BIOME := .venv/bin/python -m tools node node node_modules/@biomejs/biome/bin/biome

export SAM_CLI_TELEMETRY := 0
# Processes of the tests share compiled and rewritten modules, also where the shell forbids it.
unexport PYTHONDONTWRITEBYTECODE

##@ Use

.PHONY: run
run: setup ## start the stack with the data of the last run; on an empty one play a demo crowd (DEMO=0: no crowd, PORT=8000: fixed port, KINDS='{"bookmark": {"targets": ["post"]}}', TARGET_TYPES='{"article": {"create": "first_reaction"}}')
	@exec .venv/bin/python -m local up --port $(PORT) $(if $(filter 0,$(DEMO)),--no-demo) $(if $(KINDS),--kinds '$(KINDS)') $(if $(TARGET_TYPES),--target-types '$(TARGET_TYPES)')

.PHONY: down
down: .venv/.ready ## stop the stack; its data stays
	@.venv/bin/python -m local down

.PHONY: fresh
fresh: .venv/.ready ## delete the data of the stack, so that the next `make run` starts empty
	@.venv/bin/python -m local fresh

.PHONY: status
status: .venv/.ready ## show the parts of the stack, and the messages in its queues
	@.venv/bin/python -m local status

.PHONY: audit
audit: .venv/.ready ## check that Redis totals, MySQL counters and rows agree
	@.venv/bin/python -m local audit $(ARGS)

.PHONY: events
events: $(READY) ## write the sample events with tokens and ids of the stack to .local/events (ARGS=--clean: delete their dead letters; ENV=staging: put them as shareable test events)
	@.venv/bin/python -m tools $(if $(ENV),shared-events $(ENV),events) $(ARGS)

##@ Develop

.PHONY: setup
setup: ## install all that the other commands need; fast when nothing changed
	@$(MAKE) --no-print-directory --silent --jobs=3 $(READY)
	@.venv/bin/python -m local packages

.PHONY: test-setup
test-setup: $(READY) node_modules/.ready ## install what only tests need: npm packages, a browser
	@.venv/bin/python -m local packages --tests

.PHONY: test
test: setup test-setup ## run all tests but the deep ones (ARGS="-k like -x": some, with the deep ones)
	@.venv/bin/python -m $(if $(ARGS),pytest $(ARGS),tests --workers $(or $(WORKERS),2))

.PHONY: test-deep
test-deep: setup test-setup ## run the tests that take long or need another toolchain
	@.venv/bin/python -m tests --deep --workers $(or $(WORKERS),2)

.PHONY: test-unit
test-unit: .venv/.ready ## run the tests that need no server
	@.venv/bin/python -m pytest tests/unit $(ARGS)

.PHONY: test-shuffled
test-shuffled: ## run all tests in random order (SEED=7: in that of an earlier run)
	@PLAZA_TEST_SEED=$(or $(SEED),$(shell date +%s)) $(MAKE) --no-print-directory test

.PHONY: test-alone
test-alone: setup test-setup ## run each test file alone (WORKERS=2 at a time; ARGS="tests/unit/infra": some)
	@.venv/bin/python -m tests.support.alone --jobs $(or $(WORKERS),2) $(ARGS)

.PHONY: test-cluster
test-cluster: setup ## run integration and model tests on a Redis Cluster, and failovers
	@PLAZA_TEST_REDIS=cluster .venv/bin/python -m pytest -r s \
	  $(if $(ARGS),$(ARGS),--numprocesses $(or $(WORKERS),3) \
	  tests/integration tests/model tests/cluster)

.PHONY: test-clock
test-clock: setup ## run unit and integration tests at other times: in 1 and 45 days, on 29 February, at the end of a year (AT=+45, AT="2028-02-29 12:00")
	@.venv/bin/python -m local packages --clock
	@.venv/bin/python -m tests.clock $(if $(AT),--at "$(AT)") $(ARGS)

.PHONY: coverage
coverage: setup test-setup ## list the lines of the layer that the tests without a stack do not run
	@.venv/bin/python -m tests --coverage --workers $(or $(WORKERS),2)

.PHONY: check
check: lint types .venv-tools/.ready ## check format, lint, types, generated files and policy tests
	@.venv/bin/python -m tools generate --check
	@.venv/bin/python -m pytest -q tests/unit/policy

.PHONY: lint
lint: .venv/.ready $(if $(CI),node_modules/.ready) ## check format and lint; of TypeScript after `make test-setup`
	@.venv/bin/ruff format --check .
	@.venv/bin/ruff check .
	@if [ -n "$(CI)" ] || [ -e node_modules/.ready ]; then $(BIOME) check --error-on-warnings; fi

.PHONY: types
types: .venv/.ready ## check types, by mypy
	@.venv/bin/mypy

.PHONY: format
format: .venv/.ready ## format the code
	@.venv/bin/ruff check --fix .
	@.venv/bin/ruff format .
	@if [ -e node_modules/.ready ]; then $(BIOME) check --write --error-on-warnings; fi

.PHONY: bench
bench: setup ## measure, each figure beside a limit or a peer
	@.venv/bin/python -m bench $(ARGS)

.PHONY: capacity
capacity: setup ## print dollars per million operations, an idle month and ceilings, from prices and measured inputs
	@.venv/bin/python -m bench.capacity $(ARGS)

.PHONY: flood
flood: setup ## simulate who gets executions while requests flood accounts of several quotas
	@.venv/bin/python -m bench.flood $(ARGS)

.PHONY: models
models: setup ## run the models with many seeds (RUNS=900, PLAZA_MODEL_SEED=1000: other seeds), and their mutations
	@PLAZA_MODEL_RUNS=$(RUNS) .venv/bin/python -m pytest --numprocesses $(or $(WORKERS),3) --dist load \
	  tests/model $(ARGS)
	@$(if $(ARGS),,.venv/bin/python -m tests.model --mutations)

.PHONY: races
races: setup ## run consumers, comments, deletions and marks of unread counters at once (SECONDS=60, CONSUMERS=8)
	@PLAZA_RACE_SECONDS=$(or $(SECONDS),60) PLAZA_RACE_CONSUMERS=$(or $(CONSUMERS),8) \
	  .venv/bin/python -m pytest -q tests/integration/notifications/notifications/test_unread_races.py -k no_deadlock $(ARGS)

.PHONY: chaos
chaos: setup ## run the failure matrix, write docs/failures.md (ARGS="redis-down": one cell; "swaps": failovers there and back; "pairs": two faults; "deaths": consumers of events)
	@.venv/bin/python -m tests.chaos $(ARGS)

.PHONY: faults
faults: setup ## lose the reply of each outgoing call of each use case (ARGS="--mode killed --minutes 10")
	@.venv/bin/python -m tests.faults $(ARGS)

.PHONY: mutants
mutants: setup ## play hand-written mutants against the tests, write docs/mutants.md (ARGS="reactions/gate --jobs 4")
	@.venv/bin/python -m tests.mutants $(ARGS)

.PHONY: versions
versions: setup ## run an earlier version beside this one, deploy and roll back (ARGS="--seconds 600 --commit v0.2.0")
	@.venv/bin/python -m tests.versions $(ARGS)

.PHONY: soak
soak: setup ## check memory and audit in hours of use, compressed to minutes (ARGS="--minutes 20")
	@.venv/bin/python -m local soak $(ARGS)

.PHONY: generate
generate: .venv/.ready ## write all generated files: template, contract, clients, samples, alarms, rules of the balancer, tables of docs; after `make test-setup` the web pages, too
	@.venv/bin/python -m tools generate

.PHONY: docs
docs: .venv/.ready .venv-tools/.ready ## build the documentation site
	@.venv/bin/python -m tools docs

.PHONY: web
web: node_modules/.ready ## generate the types of the TypeScript client, build the web pages, print their sizes
	@for task in contract:client size:client build:app size:app build:console size:console; do \
	  .venv/bin/python -m tools node npm run --silent $${task%:*} -w plaza-$${task#*:}; done

.PHONY: screenshots
screenshots: setup ## take the screenshots of the web pages, on a stack of their own
	@.venv/bin/python -m local packages --tests
	@.venv/bin/python -m tests.e2e.screenshots

.PHONY: lighthouse
lighthouse: .venv/.ready .venv-tools/.ready ## print performance, accessibility and best practices of app, console (of `make run`) and site (of `make docs`)
	@.venv/bin/python -m tools lighthouse $(ARGS)

.PHONY: lock
lock: .venv-lock/.ready ## lock the dependencies of pyproject.toml, with hashes (ARGS=--upgrade: newest)
	@.venv-lock/bin/python -m tools lock $(ARGS)

.PHONY: validate
validate: .venv/.ready .venv-tools/.ready ## run sam validate --lint, and cfn-lint on the other templates
	@.venv-tools/bin/sam validate --lint --region us-east-1
	@mkdir -p .aws-sam
	@.venv/bin/python -m tools balancer --expand > .aws-sam/linted.yaml
	@.venv-tools/bin/cfn-lint --regions us-east-1 -- deploy/*.yaml .aws-sam/linted.yaml

.PHONY: scan
scan: checkov ## run cfn-lint in all regions and checkov on all templates
	@.venv-tools/bin/cfn-lint --regions ALL_REGIONS -- .aws-sam/expanded.yaml .aws-sam/balancer.yaml \
	  deploy/network.yaml deploy/data.yaml deploy/second-region.yaml

.PHONY: checkov
checkov: .venv/.ready .venv-tools/.ready .venv-scan/.ready ## run checkov on all templates, as CloudFormation gets them
	@mkdir -p .aws-sam
	@.venv/bin/python -m tools alarms --expand > .aws-sam/expanded.yaml
	@.venv/bin/python -m tools balancer --expand > .aws-sam/balancer.yaml
	@.venv-tools/bin/python tests/support/sam_transform.py < .aws-sam/expanded.yaml > .aws-sam/processed.json
	@.venv-scan/bin/checkov --config-file .ci/checkov.yaml --file .aws-sam/processed.json .aws-sam/balancer.yaml \
	  deploy/budget.yaml deploy/canary.yaml deploy/data.yaml deploy/edge.yaml deploy/network.yaml \
	  deploy/second-region.yaml

##@ Deploy

.PHONY: deploy
deploy: build ## deploy all stacks of an environment to AWS (ENV=staging, ARGS="Name=Value ...")
	@.venv/bin/python -m deploy up $(ENV) $(ARGS)

.PHONY: smoke
smoke: .venv/.ready ## like, order, read and audit at a deployed URL (ENV=staging)
	@.venv/bin/python -m deploy smoke $(ENV) $(ARGS)

.PHONY: operate
operate: .venv/.ready ## run a command of an operator (COMMAND=set-role ARGS="user_id=7 role=admin"; ENV=staging: in AWS)
	@.venv/bin/python -m $(if $(ENV),deploy operate $(ENV),local $(if $(PLAZA_DIR),--dir $(PLAZA_DIR)) operate) $(COMMAND) $(ARGS)

.PHONY: sbom
sbom: .venv-sbom/.ready ## write the software bill of materials of the layer to .aws-sam/sbom.json
	@mkdir -p .aws-sam
	@.venv-sbom/bin/cyclonedx-py requirements --output-reproducible --output-file .aws-sam/sbom.json \
	  layers/common/python/requirements.txt
	@echo "wrote .aws-sam/sbom.json"

.PHONY: vulnerabilities
vulnerabilities: .venv/.ready .venv-tools/.ready .venv-audit/.ready ## search databases for vulnerabilities of all locked packages
	@for file in layers/common/python/requirements.txt requirements/*.txt; do \
	  .venv-audit/bin/pip-audit --require-hashes --disable-pip --progress-spinner off --requirement "$$file"; done
	@.venv/bin/python -m tools node npm audit --audit-level high

.PHONY: release
release: sbom node_modules/.ready ## write notes, bill of materials, contract and clients of this version to .release
	@rm -rf .release && mkdir -p .release/assets
	@.venv/bin/python -m tools release > .release/notes.md
	@cp .aws-sam/sbom.json functions/api/system/openapi.json .release/assets
	@.venv/bin/python -m tools node npm pack --silent --workspace plaza-client --pack-destination .release/assets
	@cd clients/python && $(CURDIR)/.venv/bin/python -m hatchling build --directory $(CURDIR)/.release/assets

.PHONY: reproducible
reproducible: .venv/.ready .venv-tools/.ready ## build twice from nothing and compare all bytes
	@.venv/bin/python -m tools reproducible

.PHONY: build
build: .venv/.ready .venv-tools/.ready ## run sam build as for AWS (ARCHITECTURE=x86_64)
	@export PYTHON="python$$(cat .venv-tools/.ready)" PATH="$(CURDIR)/.venv-tools/bin:$$PATH"; \
	  .venv-tools/bin/sam build --parameter-overrides Architecture=$(ARCHITECTURE) Runtime=$$PYTHON
	@.venv/bin/python -m tools expand .aws-sam/build/template.yaml

.PHONY: layer-size
layer-size: build ## print the size of the unzipped layer (limit: 22 MB)
	@find .aws-sam/build/CommonLayer -type f -printf '%s\n' | \
	  awk '{ sum += $$1 } END { printf "%.1f MB of 22\n", sum / 1e6; exit sum > 22e6 }'

.PHONY: budget
budget: build ## print what a change adds: resources of the templates, MB of the layer (ARGS="--since main --cold")
	@.venv/bin/python -m tools budget $(ARGS)

.PHONY: clean
clean: ## stop the stack; delete all environments, builds and stacks, with their data
	@if [ -x .venv/bin/python ]; then .venv/bin/python -m local down; fi
	@rm -rf .venv .venv-tools .venv-lambda .venv-lock .venv-scan .venv-sbom .venv-audit .coverage.json .local .local-versions .local-screens .local-before .release .site .lighthouse .aws-sam node_modules clients/typescript/dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

.PHONY: help
help: ## print this list
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@/ { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@printf '\nMore commands:\n'
	@printf '  .venv/bin/python -m %-6s %s\n' \
	  local 'of the stack on this machine: tokens, logs, replays, bursts, flash sales (--help lists them)' \
	  ops 'for operators, on any environment' tools 'generators and checks'
	@echo

# Environments: development; build and deployment; the Lambda runtime; the scan of templates; the bill of
# materials; locking.

.venv/.ready: requirements/dev.txt .python-version
	@$(call make_environment,.venv,requirements/dev.txt,.)

.venv-%/.ready: requirements/%.txt .python-version
	@$(call make_environment,.venv-$*,requirements/$*.txt)

# Only tests and builds need npm packages; without a registry, tests that need them are skipped.
node_modules/.ready: package-lock.json .venv/.ready .venv-tools/.ready
	@echo "installing package-lock.json into node_modules"
	@if .venv/bin/python -m tools node npm ci $(WORKSPACES) --silent --prefer-offline --fetch-retries 1; then touch $@; \
	  else echo "plaza: npm installed nothing; tests of the web app and of the client's types are skipped" >&2; fi

define make_environment
PYTHON="$(PYTHON)" PYTHON_VERSION="$(PYTHON_VERSION)" tools/make_environment $(1) $(2) $(3)
endef
