# The targets of the project. `make help` lists them.

GO      ?= go
# Empty without a tag: the program then shows the next version, as a pre-release, and the commit.
VERSION ?= $(shell git describe --tags --exact-match --dirty 2>/dev/null)
COMMIT   = $(shell git describe --always --exclude='*' --abbrev=40 --dirty=', with changes' 2>/dev/null)
ARGS    ?= --demo --release latest

# The flags of all builds and tests. A shell that runs eval "$(make env)" also has them: go then shares make's build
# cache and the cached results of vet and tests. Because of -trimpath, copies of the sources share the cache too, for
# example that of without-v1. A -tags flag replaces this one, so it must name these tags too. make lint runs vet.
# Without debugging tables and symbols (-s), a test links in less than half the time. The timeout is per package, for a
# loaded machine.
TAGS  = nomsgpack
FLAGS = -trimpath -tags=$(TAGS) -vet=off -ldflags=-s -timeout=30m
export GOFLAGS := $(strip $(filter-out $(FLAGS),$(GOFLAGS)) $(FLAGS))

# Builds do without a C compiler, as releases do. The race detector and Vale need one.
export CGO_ENABLED ?= 0

# Empty if version 1 was removed.
V1COMPAT = $(wildcard ./v1compat)

# PostgreSQL's programs are not needed if the environment or ARGS names a server.
TEST_SERVER   = $(if $(TEST_DATABASE_URL),,postgres)
RUN_SERVER    = $(if $(findstring --database-url,$(ARGS))$(PARTNERAPI_DATABASE_URL),,postgres)

.DEFAULT_GOAL := help
.PHONY: help env build run test test-fast test-slow test-scale test-all test-dates test-nightly race bench bench-large fuzz lint subjects lint-more format postgres remove-v1 without-v1 operations rules chart chart-changed \
	vulnerabilities examples fields migrating contract scripts baseline generate goldens schema release release-test licenses

# The tests behind the build tag slow: their files, names and packages.
SLOW_FILES    = $(shell grep -rl --include='*_test.go' '^//go:build slow$$' .)
SLOW_TESTS    = $(shell sed -n 's/^func \(Test[A-Za-z0-9_]*\).*/\1/p' $(SLOW_FILES) | paste -sd '|')
SLOW_PACKAGES = $(sort $(dir $(SLOW_FILES)))

# The tests behind the build tag scale, which may use code behind the tag slow.
SCALE_FILES    = $(shell grep -rl --include='*_test.go' '^//go:build scale$$' .)
SCALE_TESTS    = $(shell sed -n 's/^func \(Test[A-Za-z0-9_]*\).*/\1/p' $(SCALE_FILES) | paste -sd '|')
SCALE_PACKAGES = $(sort $(dir $(SCALE_FILES)))

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

env: ## print the variables that let go share make's build cache (use them with eval "$(make env)")
	@echo "export GOFLAGS='$(GOFLAGS)' CGO_ENABLED=$(CGO_ENABLED)"

build: ## build bin/partnerapi
	$(GO) build -ldflags "-s -w -X 'main.version=$(VERSION)' -X 'main.commit=$(COMMIT)'" -o bin/partnerapi ./cmd/partnerapi

run: $(RUN_SERVER) build ## serve a demonstration with its own database (other flags: ARGS='…')
	bin/partnerapi serve $(ARGS)

test: $(TEST_SERVER) ## run the tests with a real PostgreSQL, except those of test-slow and test-scale
	$(GO) test ./...

# The tests of v2 with a subtest per operation.
MATRICES  = ErrorMatrix|CrossTenant|PartsOfOthers|OrderOfChecks|StatementsOfLists|StatementsOfReads|FilterMatrix

# The other tests that fail after a change to a field, a filter or an event: examples, goldens, bindings, tables in documents.
DECLARED  = Examples|EventCatalogue|CursorBindings|CursorBindingsOfV1|StatementsOfLists|StatementsOfReads|FilterMatrix|Releases|EventsOfRelease|MembersSince|Golden|Table|GivenUp|MigrationGuide|(Operations|Flags|Delta|Report)Table|Documents

test-fast: $(TEST_SERVER) ## run the tests of declarations, documents and examples, or only those with a subtest per operation, for one OPERATION (such as users.list)
	$(if $(OPERATION),,$(GO) test ./v2/op ./v2/op/openapi ./client ./docs)
	$(if $(OPERATION),,$(GO) test ./v2 $(V1COMPAT) ./cmd/partnerapi -run '^Test($(DECLARED))$$')
	$(if $(OPERATION),$(GO) test ./v2 -run '^Test($(MATRICES))$$/^$(subst .,\.,$(OPERATION))$$')

# With OFTEN=scale, tests that depend on chance repeat more often.
test-slow: $(TEST_SERVER) ## run the slow tests: kills, attacks, random histories, moves and query plans
	$(GO) test -tags '$(TAGS) slow $(OFTEN)' -parallel 4 -run '^($(SLOW_TESTS))$$' $(SLOW_PACKAGES)

test-scale: $(TEST_SERVER) ## run the longest tests: a year of the service, failovers, growth, a large move
	$(GO) test -tags '$(TAGS) slow scale' -v -timeout=1h -run '^($(SCALE_TESTS))$$' $(SCALE_PACKAGES)

test-all: $(TEST_SERVER) ## run test and test-slow
	$(GO) test -tags '$(TAGS) slow' ./...

# The end of a month and of a year, a leap day, and the first minute of a month; in UTC.
DATES     ?= 2027-01-31T23:58,2027-12-31T23:59,2028-02-29T12:00,2027-03-01T00:01
PACKAGES  ?= ./...
BUSY      ?= true

test-dates: postgres ## run the tests of PACKAGES at DATES, without DNS and with all cores BUSY (Linux)
	$(GO) mod download
	$(GO) -C tools build -o out/dates ./dates
	tools/out/dates -busy=$(BUSY) $(DATES) $(GO) test $(PACKAGES)

race: export CGO_ENABLED = 1
race: $(TEST_SERVER) ## run the tests with the race detector, except those of test-slow and test-scale
	$(GO) test -race ./...

bench: postgres ## measure speed and memory, and print a table with ratios (options: BENCH=-help)
	$(GO) -C tools/bench build -o ../out/bench .
	tools/out/bench $(BENCH)

bench-large: postgres ## run bench with a million users (creating them takes half an hour; BENCH='-data-dir DIR' keeps them)
	$(GO) -C tools/bench build -o ../out/bench .
	tools/out/bench -large $(BENCH)

# The packages with fuzz targets.
FUZZ_PACKAGES = $(sort $(dir $(shell grep -rl --include='*_test.go' '^func Fuzz' .)))
FUZZTIME     ?= 10s

fuzz: $(TEST_SERVER) ## run every fuzz target for FUZZTIME (10s), guided by coverage, and keep failing inputs in testdata/fuzz
	@GO='$(GO)' tools/fuzz.sh $(FUZZTIME) $(FUZZ_PACKAGES)

NIGHTLY_FUZZTIME ?= 5m

test-nightly: ## run race, test-slow with more repetitions, test-scale, test-dates, all of without-v1, chart, and fuzz for NIGHTLY_FUZZTIME (5m) per target; continue after failures (takes hours)
	$(MAKE) -k -j1 race test-slow OFTEN=scale test-scale test-dates $(if $(V1COMPAT),without-v1) chart fuzz FUZZTIME=$(NIGHTLY_FUZZTIME) WITHOUT_V1=./...

lint: subjects ## check formatting, wording and commit subjects, and run vet, staticcheck and actionlint
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "not formatted (make format):"; echo "$$unformatted"; exit 1; }
	$(GO) vet -tags '$(TAGS) slow scale' ./...
	$(GO) tool -modfile=tools/go.mod staticcheck -tags $(TAGS),slow,scale ./...
	cd tools/bench && $(GO) vet . && $(GO) tool -modfile=../go.mod staticcheck .
	cd tools/release && $(GO) vet . && $(GO) tool -modfile=../go.mod staticcheck .
	cd tools/mcpgo && $(GO) vet . && $(GO) tool -modfile=../go.mod staticcheck .
	cd tools/connect && $(GO) vet ./telegraf
	$(GO) tool -modfile=tools/actionlint/go.mod actionlint -shellcheck= -pyflakes= .github/workflows/*.yml
	@$(MAKE) -s voice

# A commit's subject is "package: imperative object", at most 72 characters. Older commits are not checked, and neither
# is a checkout without history.
SUBJECTS_SINCE = 2026-11-29T08:00:00Z

subjects: ## check the subjects of new commits
	@test "$$(git rev-list --count HEAD)" -le 1 || \
		git log --no-merges --since=$(SUBJECTS_SINCE) --format='%h %s' | \
		awk '{ subject = substr($$0, index($$0, " ") + 1) } length(subject) > 72 || subject !~ /^[^ :]+(, [^ :]+)*: ./ { print; bad = 1 } END { exit bad }' || \
		{ echo 'these subjects are too long or name no package ("package: imperative object", at most 72 characters)' >&2; exit 1; }

# Vale needs cgo to tell comments from code.
voice: export CGO_ENABLED = 1
voice: ## check the wording of documents and comments by the rules in tools/vale (docs/voice_test.go checks strings)
	@found=$$($(GO) tool -modfile=tools/vale/go.mod vale --no-exit --output=line $$(git ls-files '*.md' '*.go' ':!*_test.go') | grep -vEf tools/vale/exceptions.txt); \
	test -z "$$found" || { echo "$$found"; echo "reword these, or list what is right in tools/vale/exceptions.txt"; exit 1; }

lint-more: ## run golangci-lint with .golangci.yml (compiling it takes minutes)
	$(GO) tool -modfile=tools/lint/go.mod golangci-lint run ./...

vulnerabilities: ## check the code that the program calls for known vulnerabilities (in Go's public database)
	$(GO) tool -modfile=tools/lint/go.mod govulncheck ./...

format: ## format the code
	gofmt -w $$(git ls-files '*.go')

postgres: ## download PostgreSQL's programs if none are installed
	@db/embedded/fetch.sh

# All files of version 1.
OF_V1 = v1compat idmap docs/guide/moving-from-v1.md docs/operate/parity.md docs/migrating* docs/v1*.go v2/v1*.go v2/api/v1*.go v2/testdata/v1* db/v1*.go db/move/v1*.go cmd/internal/v1cmd cmd/internal/operator/v1*.go cmd/partnerapi/v1* \
	tools/bench/v1.go tools/release/v1_test.go

remove-v1: ## delete version 1 and add the migration that removes it from databases
	@last=$$(ls db/migrate/migrations | tail -n 1); next=$$(expr "$${last%%_*}" + 1); \
	cp idmap/drop.sql "db/migrate/migrations/$$(printf '%05d' "$$next")_without_v1.sql" && rm -rf $(OF_V1)
	@for file in *.md docs/*.md docs/*/*.md; do awk -f tools/without_v1.awk "$$file" >main.md.new && cat main.md.new >"$$file"; done; rm main.md.new
	@for file in $$(grep -rl --include='*.go' '// v1-line$$' .); do awk -f tools/without_v1_go.awk "$$file" >main.go.new; cat main.go.new >"$$file"; gofmt -w "$$file"; done; rm main.go.new

# The packages that without-v1 tests: those that the removal changes, except db, which the tests of v2 use anyway, and
# db/move and cmd/partnerapi, whose tests start processes. Of ./v2, it runs the tests of declarations and examples.
# make test-nightly tests all packages.
WITHOUT_V1 ?= ./v2/api ./v2/op/... ./docs ./cmd/internal/operator

without-v1: postgres ## verify that v2 serves an existing database and passes its tests after version 1 is removed
	@GO='$(GO)' DECLARED='^Test($(DECLARED))$$' tools/without_v1.sh $(WITHOUT_V1)

rules: ## check docs/alerts.yml as promtool does, run its tests if promtool is installed, and check deploy/grafana.json
	cd tools/rules && $(GO) run . ../../docs/alerts.yml ../../deploy/grafana.json
	@if command -v promtool >/dev/null; then promtool test rules docs/alerts_test.yml; fi

release: ## write the release files of VERSION (such as v1.1.0) to dist/, from the checked-out commit
	$(GO) -C tools/release build -o ../out/release .
	rm -rf dist
	tools/out/release -version '$(VERSION)' $(RELEASE)

release-test: postgres ## build a release for this platform twice, install it (as root, with dpkg) and run it
	cd tools/release && $(GO) test -count=1 .

licenses: ## check that the licenses of all dependencies are compatible
	$(GO) -C tools/release build -o ../out/release .
	tools/out/release -licenses

# Prints a checksum of the files that the result of make chart depends on.
CHART_SUM = git ls-files -z deploy/helm tools/chart ':!tools/chart/passed' | xargs -0 sha256sum | sha256sum

chart: ## check deploy/helm as helm lint and helm template do, with all combinations of its main values
	cd tools/chart && $(GO) vet . && $(GO) run . ../../deploy/helm
	@$(CHART_SUM) >tools/chart/passed

# Compiling Kubernetes' types takes minutes, so unchanged charts are skipped.
chart-changed: ## run make chart if the chart has changed since it last passed (tools/chart/passed)
	@$(CHART_SUM) | cmp -s - tools/chart/passed || $(MAKE) chart

operations: ## generate docs/operations.md, docs/flags.md and the tables in guides from the declarations
	$(GO) test ./cmd/partnerapi -run '^Test(Operations|Flags|Delta|Report)Table$$' -update

goldens: $(TEST_SERVER) ## generate the golden files of cursor bindings and of v1's translators
	$(GO) test ./v2 $(V1COMPAT) -run '^Test(CursorBindings|CursorBindingsOfV1|Golden)$$' -update

schema: $(TEST_SERVER) ## generate docs/schema.md from a migrated database
	$(GO) test ./db/migrate -run '^TestSchemaDocument$$' -update

examples: $(TEST_SERVER) ## generate the examples in the OpenAPI documents and the events guide from the demonstration
	$(GO) test ./v2 $(V1COMPAT) -run '^Test(Examples|EventCatalogue)$$' -update

# The tests run one after the other: the second writes what the first reads.
fields: ## generate docs/migrating.md and the pages in docs/migrating with their tables of fields
	$(GO) test ./v1compat -parallel 1 -run '^Test(Table|MigrationGuide)$$' -update

migrating: fields $(TEST_SERVER) ## run fields, and generate the examples in its pages and in docs/guide/moving-from-v1.md from the demonstration
	$(GO) test ./cmd/partnerapi -run '^TestGuides$$/^(migrating|moving-from-v1)$$' -update

# First come the targets that fail within seconds if a handwritten row is missing. Last are those that run the
# demonstration.
ONLY ?= operations goldens $(if $(V1COMPAT),fields) schema examples $(if $(V1COMPAT),migrating)

generate: $(TEST_SERVER) ## regenerate all generated files, or ONLY some targets (ONLY='schema examples'), in a copy of the sources; a failure changes nothing
	@GO='$(GO)' tools/generate.sh $(ONLY)

# The packages match the lock file if npm's own record is newer than it.
tools/npm/node_modules/.package-lock.json: tools/npm/package-lock.json
	cd tools/npm && npm ci --prefer-offline

scripts: tools/npm/node_modules/.package-lock.json ## install the npm packages that make contract needs, if they are missing

contract: postgres ## check the OpenAPI documents, run generated clients and MCP clients, and test the pages in Chromium
	@GO='$(GO)' tools/contract.sh

baseline: ## store the current OpenAPI documents, and those of RELEASES (such as '2.3'), as the baseline
	@GO='$(GO)' tools/contract.sh baseline $(RELEASES)
