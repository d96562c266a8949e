# How `sam build` builds a function with requirements of its own, in a copy of its folder: packages as wheels for the
# processor of the functions, with the hashes of requirements.txt, as the layer's; http-ece, of Python only, has no wheel. The Makefile of each processor sets
# PLATFORM.

PYTHON ?= python3.13
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')

build-%:
	$(PYTHON) -m pip --disable-pip-version-check --quiet install --no-deps --no-compile --require-hashes \
	  --only-binary :all: --no-binary http-ece --platform $(PLATFORM) --implementation cp --python-version $(VERSION) \
	  --target "$(ARTIFACTS_DIR)" --requirement requirements.txt
	rm -rf "$(ARTIFACTS_DIR)/bin"
	find "$(ARTIFACTS_DIR)" -name '*.pyi' -delete
	find "$(ARTIFACTS_DIR)"/*.dist-info -type f ! -name METADATA ! -iname '*licen[cs]e*' ! -iname '*notice*' -delete
	cp app.py "$(ARTIFACTS_DIR)"
