# How `sam build` builds the layer, in a copy of this folder: packages as wheels for the processor of the functions,
# which need not be that of this machine, then Plaza, then bytecode. The Makefile of each processor sets PLATFORM.

PYTHON ?= python3.13
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
LAYER := $(ARTIFACTS_DIR)/python

# What no function imports, 5 MB. A test compares it with what they do import. Of the metadata of packages, licences
# and the fields before the description stay.
POWERTOOLS := aws_lambda_powertools/utilities
UNUSED := bin aws_lambda_powertools/event_handler/openapi/swagger_ui/*.min.* \
  $(addprefix $(POWERTOOLS)/,auth_alpha circuit_breaker data_masking feature_flags idempotency kafka parameters streaming) \
  $(addprefix packaging/,_elffile.py _m*linux.py _parser.py _ranges.py _tokenizer.py dependency_groups.py direct_url.py \
    licenses markers.py metadata.py pylock.py ranges.py requirements.py specifiers.py tags.py utils.py) \
  pydantic/mypy.py pydantic/v1 pymysqlreplication/tests \
  $(addprefix aws_lambda_powertools/event_handler/,appsync.py bedrock_agent.py bedrock_agent_function.py \
    events_appsync graphql_appsync) aws_lambda_powertools/utilities/validation \
  aws_lambda_powertools/metrics/provider/datadog \
  $(addprefix $(POWERTOOLS)/data_classes/,active_mq_event.py cognito_*.py iot_*.py s3_object_event.py) \
  pydantic/color.py pydantic/experimental redis/background.py redis/multidb \
  $(addprefix $(POWERTOOLS)/parser/models/,a*.py cognito.py iot*.py s3*.py sns.py vpc*.py) \
  $(addprefix phonenumbers/,carrier.py geocoder.py prefix.py timezone.py) redis/http redis/asyncio/http \
  $(addprefix tzdata/zoneinfo/,*.tab leapseconds tzdata.zi) \
  phonenumbers/shortdata/region_*.py $(addprefix redis/commands/,bf json search timeseries vectorset) \
  $(addprefix redis/asyncio/,_himport_exec.py client.py cluster.py connection.py keyspace_notifications.py lock.py \
    maint_notifications.py multidb sentinel.py)

.PHONY: build-CommonLayer
build-CommonLayer:
	$(PYTHON) -m pip --disable-pip-version-check --quiet install --no-deps --no-compile --require-hashes \
	  --only-binary :all: --platform $(PLATFORM) --implementation cp --python-version $(VERSION) \
	  --target "$(LAYER)" --requirement python/requirements.txt
	cd "$(LAYER)" && rm -rf $(UNUSED)
	find "$(LAYER)" -name '*.pyi' -delete
	sed --in-place '/^$$/,$$d' "$(LAYER)"/*.dist-info/METADATA
	find "$(LAYER)"/*.dist-info -type f ! -name METADATA ! -iname '*licen[cs]e*' ! -iname '*notice*' -delete
	cp -R python/plaza "$(LAYER)"
	find "$(LAYER)" -name __pycache__ -prune -exec rm -rf {} +
	$(PYTHON) assemble.py "$(LAYER)"
	$(PYTHON) compile.py compiled.txt "$(LAYER)"
