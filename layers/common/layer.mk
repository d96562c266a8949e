# How `sam build` builds the layer, in a copy of this folder: packages as wheels for the processor of the functions,
# which need not be that of this machine, then Plaza, then bytecode. The Makefile of each processor sets PLATFORM.

PYTHON ?= python3.11
LAYER := $(ARTIFACTS_DIR)/python

.PHONY: build-CommonLayer
build-CommonLayer:
	$(PYTHON) -m pip --disable-pip-version-check --quiet install --no-deps --no-compile --require-hashes \
	  --only-binary :all: --platform $(PLATFORM) --implementation cp --python-version 3.11 \
	  --target "$(LAYER)" --requirement python/requirements.txt
	rm -rf "$(LAYER)/bin" "$(LAYER)"/aws_lambda_powertools/event_handler/openapi/swagger_ui/*.min.* # 1.7 MB
	cp -R python/plaza "$(LAYER)"
	find "$(LAYER)" -name __pycache__ -prune -exec rm -rf {} +
	$(PYTHON) compile.py compiled.txt "$(LAYER)"
