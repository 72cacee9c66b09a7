# The targets of the project. `make help` lists them.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
ARGS    ?= --demo

.DEFAULT_GOAL := help
.PHONY: help build run test race bench fuzz lint format postgres without-v1 operations

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/partnerapi
	$(GO) build -trimpath -ldflags '-X main.version=$(VERSION)' -o bin/partnerapi ./cmd/partnerapi

run: postgres build ## serve a demonstration on its own database (ARGS='…' for other flags)
	bin/partnerapi serve $(ARGS)

test: postgres ## run all tests, on a real PostgreSQL
	$(GO) test ./...

race: postgres ## run all tests with the race detector
	$(GO) test -race ./...

bench: postgres build ## measure speed and memory, and print a table with ratios
	$(GO) run ./cmd/bench

fuzz: postgres ## run every fuzz target for FUZZTIME (10s)
	@set -e; for package in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "$$package $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $${FUZZTIME:-10s} $$package; \
		done; \
	done

lint: ## check formatting, vet and staticcheck
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "not formatted (make format):"; echo "$$unformatted"; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

format: ## format the code
	gofmt -w $$(git ls-files '*.go')

postgres: ## get PostgreSQL's programs, where there are none
	@db/embedded/fetch.sh

without-v1: postgres ## prove that v2 builds and passes its tests without version 1
	@set -e; copy=$$(mktemp -d); trap 'rm -rf "$$copy"' EXIT; \
	git ls-files -z --cached --others --exclude-standard | tar -c --null -T - | tar -x -C "$$copy"; \
	cd "$$copy" && rm -rf v1compat idmap cmd/partnerapi/v1.go cmd/bench/v1.go && $(GO) build ./... && $(GO) vet ./... && $(GO) test ./...

operations: ## write docs/operations.md from the operations' declarations
	$(GO) test ./cmd/partnerapi -run '^TestOperationsTable$$' -update
