# The targets are listed by `make help`.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The tests also use this Python for the process sandbox, so it should have the libraries.
PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)
export PYTHON
# The race detector needs a C compiler.
RACE := $(if $(shell command -v gcc || command -v clang),-race)
# Extra flags for go test, the benchmark and docker build.
TESTFLAGS ?=
# With RETRY=1, tests that fail run once more by themselves.
RETRY ?=
BENCHFLAGS ?=
DOCKERFLAGS ?=
# How many steps the model of an execution makes in `make fuzz`: ten million take three minutes of processor time.
MODELSTEPS ?= 10000000
# How long each fuzz target runs. 5000x runs it 5000 times instead.
FUZZTIME ?= 10s

GOLANGCI_VERSION := v2.15.0
GOLANGCI := bin/golangci-lint-$(GOLANGCI_VERSION)
GOTESTSUM_VERSION := v1.13.0
GOTESTSUM := bin/gotestsum-$(GOTESTSUM_VERSION)
# The tests need an S3 server, an OCI runtime and Compose.
VERSITYGW := github.com/versity/versitygw/cmd/versitygw@v1.8.0
RUNSC := gvisor.dev/gvisor/runsc@v0.0.0-20260905035102-160fafc42237
COMPOSE_VERSION := github.com/docker/compose/v2@v2.40.3
export PATH := $(CURDIR)/bin:$(PATH)

# A portable build of CPython, as uv and other tools install it, which a Go module carries. Sandboxes
# cover /tmp and the like, so it cannot be there.
PORTABLE_VERSION := 3.14.6
PORTABLE_MODULE := v0.0.0-$(PORTABLE_VERSION)-20260610-1
PORTABLE := $(if $(filter /tmp/% /var/tmp/% /dev/shm/% /mnt/data/%,$(CURDIR)/),$(HOME)/.cache/fermata,$(CURDIR)/bin)/python-$(PORTABLE_VERSION)
# Other Pythons that the machine may have, for a few of the tests.
OTHER_PYTHONS := $(wildcard $(HOME)/.pyenv/versions/3.12.*/bin/python3 $(HOME)/.pyenv/versions/3.13.*/bin/python3)

# The folders of black-box tests; tests/README.md tells what is where. They run one after the
# other (-p 1), since each keeps the machine busy.
ROOMS := $(patsubst %/main_test.go,./%,$(wildcard tests/*/main_test.go))
# These tests have targets of their own: LibreChat's client is large to install, Compose is
# one more program, and the soak and the attacks take long.
CLIENT := ^TestLibreChat$$
COMPOSE := ^TestCompose$$
SOAK := ^TestSoak
HOSTILE := ./tests/hostile
# How long the attacks go on. At 0 each attack is made once.
FERMATA_HOSTILE_TIME ?= 1h
# In a soak, unless it is a short one, these tests kill and stop servers more often.
KILLS := ^(TestKilledAtAnyInstant|TestReplicasKilledInTurn|TestRollingRestart|TestAtMostOnce)$$

# The packages that are not rooms: their tests need no server.
PACKAGES = $$(go list ./... | grep -vxF "$$(go list $(ROOMS))")

# $(call need,PROGRAM,HOW TO GET IT)
need = @command -v $(1) >/dev/null || { echo "make $@ needs $(1): $(2)" >&2; exit 1; }
# $(call need_module,MODULE,DEBIAN PACKAGE)
need_module = @$(PYTHON) -c 'import $(1)' 2>/dev/null || \
	{ echo "make $@ needs $(1) for $(PYTHON): apt-get install $(2), or pip install $(1)" >&2; exit 1; }

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The validator of fields then looks up no methods by their names, which would keep the linker from
# leaving out methods that nobody calls: 12 MB. The Dockerfile has the same.
TAGS := validator_novalidatefn

.PHONY: build
build: ## the server, bin/fermata
	go build -trimpath -tags=$(TAGS) -ldflags='-s -w' -o bin/fermata ./cmd/fermata

# How the tests run.
TESTER := $(if $(RETRY),.ci/retry $(GOTESTSUM),go test)

.PHONY: test
test: $(if $(RETRY),$(GOTESTSUM)) ## every test except client, compose, soak and hostile: Go packages with the race detector, the server as a black box, Python
	$(call need,$(PYTHON),install Python 3.11 or later, or set PYTHON)
	@# Everything runs, even after a failure. The black-box tests need -count=1: Go's cache of
	@# results does not know that they build the server. "make lint" vets them.
	@failed=0; \
	echo "== Go packages"; \
	$(TESTER) $(RACE) -shuffle=on -count=1 $(TESTFLAGS) $(PACKAGES) || failed=1; \
	echo "== the server as a black box"; \
	$(TESTER) -shuffle=on -count=1 -p 1 -vet=off -timeout=50m -skip='$(CLIENT)|$(COMPOSE)|$(SOAK)' $(TESTFLAGS) \
		$(filter-out $(HOSTILE),$(ROOMS)) || failed=1; \
	echo "== Python"; \
	if $(PYTHON) -c 'import hypothesis, pytest, pytest_timeout' 2>/dev/null || [ -n "$${CI:-}" ]; then \
		(cd python && $(PYTHON) -m pytest -q -rs) || failed=1; \
	else \
		echo "left out: the runner's own tests need python3-pytest python3-pytest-timeout python3-hypothesis"; \
	fi; \
	exit $$failed

.PHONY: test-short
test-short: ## the Go tests that need no server, without the race detector
	go test -short $(PACKAGES)

.PHONY: client
client: ## LibreChat's own client against the server (installs it: 550 MB), and MCP servers from npm as toolsets
	go test -count=1 -timeout=20m -v -run='$(CLIENT)' ./tests/librechat
	FERMATA_TEST_NPM=1 go test -count=1 -timeout=10m -v -run='^TestNPMServers$$' ./engine/tools/mcptool

.PHONY: compat
compat: ## real OpenAPI documents and MCP servers as toolsets, as docs/compatibility.md says (from npm, PyPI and modules of Go: 2 GB)
	FERMATA_TEST_COMPAT=1 go test -count=1 -timeout=10m -v -run='^TestRealDocuments$$' ./engine/tools/openapi
	FERMATA_TEST_COMPAT=1 go test -count=1 -timeout=20m -v -run='^TestRealServers$$' ./engine/tools

.PHONY: compose
compose: ## compose.yaml unchanged, with the images; needs Docker with Compose
	go test -count=1 -timeout=10m -v -run='$(COMPOSE)' ./tests/deploy

.PHONY: pythons
pythons: $(PORTABLE) ## process sandboxes with a portable CPython 3.14 and, a few tests, with the 3.12 and 3.13 of pyenv
	@# CI is unset, since these Pythons lack the libraries, whose tests are skipped then.
	@unset CI; failed=0; \
	room() { echo "== $$1: $$2 $$3"; PYTHON=$$1 go test -count=1 -timeout=10m -run="$$3/^process\+file$$" $$2 || failed=1; }; \
	room $(PORTABLE)/bin/python3 ./tests/programs ""; \
	room $(PORTABLE)/bin/python3 ./tests/isolation ""; \
	echo "== $(PORTABLE)/bin/python3: ./tests/differential"; \
	PYTHON=$(PORTABLE)/bin/python3 go test -count=1 -timeout=10m ./tests/differential || failed=1; \
	room $(PORTABLE)/bin/python3 ./tests/survival '^(TestKilledWhilePaused|TestKilledWhileRunning|TestSandboxesKilled)$$'; \
	for python in $(OTHER_PYTHONS); do \
		room $$python ./tests/programs '^(TestPythonEnvironment|TestPythonSource|TestRounds)$$'; \
		room $$python ./tests/isolation '^(TestPrivileges|TestProcTellsOfNoHost)$$'; \
	done; \
	exit $$failed

$(PORTABLE):
	mkdir -p $(dir $@)
	$(PYTHON) .ci/portable-python $@ $(PORTABLE_MODULE)

.PHONY: lint
lint: $(GOLANGCI) ## formatting, linters and types, Go and Python
	$(call need_module,mypy,mypy)
	$(call need_module,black,black)
	go vet ./...
	@# The Docker mode builds on macOS, which this checks without a Mac.
	GOOS=darwin GOARCH=arm64 go vet ./...
	$(GOLANGCI) run --allow-serial-runners ./...
	cd python && $(PYTHON) -m mypy && $(PYTHON) -m mypy --strict ../tests/bench
	cd python && $(PYTHON) -m black --config pyproject.toml --check --quiet . ../tests/bench || \
		{ echo "format with: cd python && black --config pyproject.toml . ../tests/bench" >&2; exit 1; }

$(GOLANGCI):
	GOBIN=$(CURDIR)/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv bin/golangci-lint $@

$(GOTESTSUM):
	GOBIN=$(CURDIR)/bin go install gotest.tools/gotestsum@$(GOTESTSUM_VERSION)
	mv bin/gotestsum $@

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME, 10s, and MODELSTEPS steps of the model of an execution
	@grep -rnoE --include='*_test.go' --exclude-dir=node_modules '^func Fuzz[A-Za-z0-9_]+' . | \
		sed -E 's|^(.*)/[^/]+:[0-9]+:func (.*)$$|\1 \2|' | sort | while read -r dir target; do \
		echo "== $$dir $$target"; \
		go test -run='^$$' -fuzz="^$$target\$$" -fuzztime=$(FUZZTIME) "$$dir" || exit 1; \
	done
	go test -count=1 -timeout=0 -run='^TestModel$$' ./engine/core -args -model-steps=$(MODELSTEPS)

.PHONY: bench
bench: ## the server's figures beside the floors; BENCHFLAGS=-h lists the flags
	go run ./tests/bench -python $(PYTHON) $(BENCHFLAGS)

# The settings of BENCHFLAGS='-set NAME=VALUE' are those of the new server alone.
.PHONY: bench-ab
bench-ab: ## compare servers of two commits, OLD and NEW, or two settings; without NEW the work tree is the new one
	go run ./tests/bench -ab -python $(PYTHON) -old '$(OLD)' -new '$(NEW)' $(BENCHFLAGS)

.PHONY: soak
soak: ## run 10,000 executions on each setup and look for leaks, pause 1,000 at once, then kill servers for long; FERMATA_TEST_SOAK=N runs N and kills none
	go test -count=1 -timeout=2h -v -run='$(SOAK)' ./tests/load
	$(if $(FERMATA_TEST_SOAK),,FERMATA_SOAK=1 go test -count=1 -timeout=2h -p 1 -v -run='$(KILLS)' ./tests/survival ./tests/toolsets)

.PHONY: hostile
hostile: ## attack a server with programs, system calls, frames and connections for FERMATA_HOSTILE_TIME, 1h; seeds are printed
	FERMATA_HOSTILE_TIME=$(FERMATA_HOSTILE_TIME) go test -count=1 -timeout=0 -v $(TESTFLAGS) $(HOSTILE)

.PHONY: images
images: ## the Docker images fermata and fermata-sandbox
	$(call need,docker,https://docs.docker.com/engine/install)
	docker build $(DOCKERFLAGS) --target server --build-arg VERSION="$$(git describe --tags --always --dirty 2>/dev/null || echo unreleased)" --tag fermata .
	docker build $(DOCKERFLAGS) --target sandbox --tag fermata-sandbox .

bin/versitygw:
	GOBIN=$(CURDIR)/bin go install $(VERSITYGW)

bin/runsc:
	CGO_ENABLED=0 GOBIN=$(CURDIR)/bin go install $(RUNSC)

# Its module replaces other modules, so "go install" does not take it by name.
bin/docker-compose:
	cd "$$(go mod download -json $(COMPOSE_VERSION) | jq --raw-output .Dir)" && \
		CGO_ENABLED=0 go build -trimpath -o $(CURDIR)/bin/docker-compose ./cmd

.PHONY: clean
clean: ## remove what the other targets make
	rm -rf bin tests/librechat/node_modules tests/mcp/node_modules
	find . -name node_modules -prune -o -type d \
		\( -name __pycache__ -o -name .mypy_cache -o -name .pytest_cache -o -name .hypothesis \) -print0 | xargs -0 rm -rf
