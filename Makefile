# The targets of the project. `make help` lists them.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
ARGS    ?= --demo --release latest

# The flags of all builds and tests. A shell that runs eval "$(make env)" has them too: go then shares make's build
# cache, and what vet and tests found out. Because of -trimpath, copies of the sources share it, such as that of
# without-v1. A flag -tags replaces this one, and names its tags too. make lint runs vet. Without tables for debuggers
# and symbols (-s), a test links in less than half the time. The timeout is of a package, on a loaded machine.
TAGS  = nomsgpack
FLAGS = -trimpath -tags=$(TAGS) -vet=off -ldflags=-s -timeout=30m
export GOFLAGS := $(strip $(filter-out $(FLAGS),$(GOFLAGS)) $(FLAGS))

# Without a compiler of C, as releases are built. The race detector needs it.
export CGO_ENABLED ?= 0

# Empty where version 1 was removed.
V1COMPAT = $(wildcard ./v1compat)

# A server that is named makes PostgreSQL's programs unnecessary.
TEST_SERVER   = $(if $(TEST_DATABASE_URL),,postgres)
RUN_SERVER    = $(if $(findstring --database-url,$(ARGS))$(PARTNERAPI_DATABASE_URL),,postgres)

.DEFAULT_GOAL := help
.PHONY: help env build run test test-fast test-slow test-scale test-all test-dates test-nightly race bench bench-large fuzz lint lint-more format postgres remove-v1 without-v1 operations rules chart chart-changed \
	vulnerabilities examples fields migrating contract scripts baseline generate goldens schema release release-test licenses

# The tests behind the build tag slow: their files, names and packages.
SLOW_FILES    = $(shell grep -rl --include='*_test.go' '^//go:build slow$$' .)
SLOW_TESTS    = $(shell sed -n 's/^func \(Test[A-Za-z0-9_]*\).*/\1/p' $(SLOW_FILES) | paste -sd '|')
SLOW_PACKAGES = $(sort $(dir $(SLOW_FILES)))

# Those behind the build tag scale, which may use what is behind slow.
SCALE_FILES    = $(shell grep -rl --include='*_test.go' '^//go:build scale$$' .)
SCALE_TESTS    = $(shell sed -n 's/^func \(Test[A-Za-z0-9_]*\).*/\1/p' $(SCALE_FILES) | paste -sd '|')
SCALE_PACKAGES = $(sort $(dir $(SCALE_FILES)))

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

env: ## print the exports by which go shares the build cache with make: eval "$(make env)"
	@echo "export GOFLAGS='$(GOFLAGS)' CGO_ENABLED=$(CGO_ENABLED)"

build: ## build bin/partnerapi
	$(GO) build -ldflags '-s -w -X main.version=$(VERSION)' -o bin/partnerapi ./cmd/partnerapi

run: $(RUN_SERVER) build ## serve a demonstration on its own database (ARGS='…' for other flags)
	bin/partnerapi serve $(ARGS)

test: $(TEST_SERVER) ## run the tests, on a real PostgreSQL, without those of test-slow
	$(GO) test ./...

# The tests of v2 with a subtest for each operation.
MATRICES  = ErrorMatrix|CrossTenant|PartsOfOthers|OrderOfChecks|StatementsOfLists|StatementsOfReads|FilterMatrix

# What else fails after a change of a field, a filter or an event: examples, goldens, bindings, tables of documents.
DECLARED  = Examples|EventCatalogue|CursorBindings|CursorBindingsOfV1|StatementsOfLists|StatementsOfReads|FilterMatrix|Releases|EventsOfRelease|MembersSince|Golden|Table|GivenUp|MigrationGuide|(Operations|Flags|Delta|Report)Table|Documents

test-fast: $(TEST_SERVER) ## run the tests of declarations, documents and examples, or the matrices of one OPERATION (users.list)
	$(if $(OPERATION),,$(GO) test ./v2/op ./v2/op/openapi ./client ./docs)
	$(if $(OPERATION),,$(GO) test ./v2 $(V1COMPAT) ./cmd/partnerapi -run '^Test($(DECLARED))$$')
	$(if $(OPERATION),$(GO) test ./v2 -run '^Test($(MATRICES))$$/^$(subst .,\.,$(OPERATION))$$')

test-slow: $(TEST_SERVER) ## run the tests of kills, attacks, random histories and query plans
	$(GO) test -tags '$(TAGS) slow' -parallel 4 -run '^($(SLOW_TESTS))$$' $(SLOW_PACKAGES)

test-scale: $(TEST_SERVER) ## run the tests that take long: a year of the service, failovers, growth, a large move
	$(GO) test -tags '$(TAGS) slow scale' -v -timeout=1h -run '^($(SCALE_TESTS))$$' $(SCALE_PACKAGES)

test-all: $(TEST_SERVER) ## run test and test-slow
	$(GO) test -tags '$(TAGS) slow' ./...

# A month's end and a year's, a leap day, and the first minute of a month; in UTC.
DATES     ?= 2027-01-31T23:58,2027-12-31T23:59,2028-02-29T12:00,2027-03-01T00:01
PACKAGES  ?= ./...
BUSY      ?= true

test-dates: postgres ## run the tests of PACKAGES at DATES, without a resolver, all cores BUSY (Linux)
	$(GO) mod download
	$(GO) -C tools build -o out/dates ./dates
	tools/out/dates -busy=$(BUSY) $(DATES) $(GO) test $(PACKAGES)

race: export CGO_ENABLED = 1
race: $(TEST_SERVER) ## run the tests with the race detector, without those of test-slow
	$(GO) test -race ./...

bench: postgres ## measure speed and memory, and print a table with ratios (BENCH=-help: what of it)
	$(GO) -C tools/bench build -o ../out/bench .
	tools/out/bench $(BENCH)

bench-large: postgres ## measure the same on a million users (half an hour to fill; BENCH='-data-dir DIR' keeps them)
	$(GO) -C tools/bench build -o ../out/bench .
	tools/out/bench -large $(BENCH)

# The packages with fuzz targets.
FUZZ_PACKAGES = $(sort $(dir $(shell grep -rl --include='*_test.go' '^func Fuzz' .)))
FUZZTIME     ?= 10s

fuzz: $(TEST_SERVER) ## run every fuzz target for FUZZTIME (10s), guided by coverage; what fails is kept in testdata/fuzz
	@GO='$(GO)' tools/fuzz.sh $(FUZZTIME) $(FUZZ_PACKAGES)

NIGHTLY_FUZZTIME ?= 5m

test-nightly: ## run race, test-scale, test-dates, all of without-v1, chart, and fuzz for NIGHTLY_FUZZTIME (5m) a target; all, though one fails (hours)
	$(MAKE) -k -j1 race test-scale test-dates $(if $(V1COMPAT),without-v1) chart fuzz FUZZTIME=$(NIGHTLY_FUZZTIME) WITHOUT_V1=./...

lint: ## check formatting, vet, staticcheck, and the workflows of .github
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "not formatted (make format):"; echo "$$unformatted"; exit 1; }
	$(GO) vet -tags '$(TAGS) slow scale' ./...
	$(GO) tool -modfile=tools/go.mod staticcheck -tags $(TAGS),slow,scale ./...
	cd tools/bench && $(GO) vet . && $(GO) tool -modfile=../go.mod staticcheck .
	cd tools/release && $(GO) vet . && $(GO) tool -modfile=../go.mod staticcheck .
	cd tools/mcpgo && $(GO) vet . && $(GO) tool -modfile=../go.mod staticcheck .
	cd tools/connect && $(GO) vet ./telegraf
	$(GO) tool -modfile=tools/actionlint/go.mod actionlint -shellcheck= -pyflakes= .github/workflows/*.yml

lint-more: ## run golangci-lint (.golangci.yml); it takes minutes to compile
	$(GO) tool -modfile=tools/lint/go.mod golangci-lint run ./...

vulnerabilities: ## look up known vulnerabilities in what the program calls (in Go's public database)
	$(GO) tool -modfile=tools/lint/go.mod govulncheck ./...

format: ## format the code
	gofmt -w $$(git ls-files '*.go')

postgres: ## get PostgreSQL's programs, where there are none
	@db/embedded/fetch.sh

# All that is version 1.
OF_V1 = v1compat idmap docs/guide/moving-from-v1.md docs/operate/parity.md docs/migrating* docs/v1*.go v2/v1*.go v2/api/v1*.go v2/testdata/v1* db/v1*.go db/move/v1*.go cmd/internal/v1cmd cmd/internal/operator/v1*.go cmd/partnerapi/v1* \
	tools/bench/v1.go

remove-v1: ## delete version 1, and add the migration that takes it out of databases
	@last=$$(ls db/migrate/migrations | tail -n 1); next=$$(expr "$${last%%_*}" + 1); \
	cp idmap/drop.sql "db/migrate/migrations/$$(printf '%05d' "$$next")_without_v1.sql" && rm -rf $(OF_V1)
	@for file in *.md docs/*.md docs/*/*.md; do awk -f tools/without_v1.awk "$$file" >main.md.new && cat main.md.new >"$$file"; done; rm main.md.new
	@for file in $$(grep -rl --include='*.go' '// v1-line$$' .); do awk -f tools/without_v1_go.awk "$$file" >main.go.new; cat main.go.new >"$$file"; gofmt -w "$$file"; done; rm main.go.new

# The packages that without-v1 tests: those that the removal changes, but for db/move and cmd/partnerapi, whose tests
# start processes. make test-nightly tests all.
WITHOUT_V1 ?= ./v2/... ./db ./docs ./cmd/internal/operator

without-v1: postgres ## prove that v2 serves a used database, and passes its tests, without version 1
	@GO='$(GO)' tools/without_v1.sh $(WITHOUT_V1)

rules: ## check docs/alerts.yml as promtool does, and run its tests where promtool is installed; check deploy/grafana.json
	cd tools/rules && $(GO) run . ../../docs/alerts.yml ../../deploy/grafana.json
	@if command -v promtool >/dev/null; then promtool test rules docs/alerts_test.yml; fi

release: ## write dist/, what VERSION=v1.0.0 is given out as, of the commit that is checked out
	$(GO) -C tools/release build -o ../out/release .
	rm -rf dist
	tools/out/release -version '$(VERSION)' $(RELEASE)

release-test: postgres ## make a release of this platform twice, install it (as root, with dpkg), and run it
	cd tools/release && $(GO) test -count=1 .

licenses: ## check that the licences of all that the program is built from fit
	$(GO) -C tools/release build -o ../out/release .
	tools/out/release -licenses

# What the result of make chart depends on.
CHART_SUM = git ls-files -z deploy/helm tools/chart ':!tools/chart/passed' | xargs -0 sha256sum | sha256sum

chart: ## check deploy/helm as helm lint and helm template do, in every combination of its main values
	cd tools/chart && $(GO) vet . && $(GO) run . ../../deploy/helm
	@$(CHART_SUM) >tools/chart/passed

# Kubernetes' types take minutes to compile.
chart-changed: ## run make chart unless the chart is the one that passed last (tools/chart/passed)
	@$(CHART_SUM) | cmp -s - tools/chart/passed || $(MAKE) chart

operations: ## write docs/operations.md, docs/flags.md and the tables of guides from the declarations
	$(GO) test ./cmd/partnerapi -run '^Test(Operations|Flags|Delta|Report)Table$$' -update

goldens: $(TEST_SERVER) ## write what cursors are bound to, and what the translators of v1 make
	$(GO) test ./v2 $(V1COMPAT) -run '^Test(CursorBindings|CursorBindingsOfV1|Golden)$$' -update

schema: $(TEST_SERVER) ## write docs/schema.md from a migrated database
	$(GO) test ./db/migrate -run '^TestSchemaDocument$$' -update

examples: $(TEST_SERVER) ## write the examples of the OpenAPI documents, and of the guide to events, from the demonstration
	$(GO) test ./v2 $(V1COMPAT) -run '^Test(Examples|EventCatalogue)$$' -update

# One after the other: the second writes what the first reads.
fields: ## renew docs/migrating.md and docs/migrating around their tables of fields
	$(GO) test ./v1compat -parallel 1 -run '^Test(Table|MigrationGuide)$$' -update

migrating: fields $(TEST_SERVER) ## run fields, and renew the examples of these guides and of docs/guide/moving-from-v1.md on the demonstration
	$(GO) test ./cmd/partnerapi -run '^TestGuides$$/^(migrating|moving-from-v1)$$' -update

# First those that fail within seconds where a row is missing that people write; last what runs the demonstration.
ONLY ?= operations goldens $(if $(V1COMPAT),fields) schema examples $(if $(V1COMPAT),migrating)

generate: $(TEST_SERVER) ## renew all that is generated, or ONLY some targets (ONLY='schema examples'), in a copy of the sources; where that fails, nothing is changed
	@GO='$(GO)' tools/generate.sh $(ONLY)

# They are as the lock file has them where npm's own note is newer than that.
tools/npm/node_modules/.package-lock.json: tools/npm/package-lock.json
	cd tools/npm && npm ci --prefer-offline

scripts: tools/npm/node_modules/.package-lock.json ## install what make contract runs of npm's registry, where it is not there

contract: postgres ## lint the OpenAPI documents, run programs with the clients made from them and with agents' clients, and see the pages in Chromium
	@GO='$(GO)' tools/contract.sh

baseline: ## keep the OpenAPI documents of today as served, and those of RELEASES ('2.3')
	@GO='$(GO)' tools/contract.sh baseline $(RELEASES)
