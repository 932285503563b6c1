# The targets of this repository. Each target is one script or one line of cargo; scripts/setup installs their tools and is
# quick when nothing is missing.

SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# As in scripts/lib/common.sh: tools from the cache, and cargo for shells without it in PATH.
CACHE := $(or $(LEASEHOLD_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/leasehold)
export PATH := $(CACHE)/bin:$(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)
BINARY := $(or $(CARGO_TARGET_DIR),target)/release/leasehold

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## all set-up, then the console on throwaway servers; prints a sign-in link last
	@exec scripts/demo

.PHONY: test
test: ## all set-up, then every test
	@scripts/test

.PHONY: check
check: ## format, lints of both graphs, unit tests: the inner loop
	@scripts/check

# Shipped and measured binaries use fat LTO: up to a tenth more leases a second, for a longer build. Both kinds of build are kept in
# the target folder.
build bench dist: export CARGO_PROFILE_RELEASE_LTO := fat
build bench dist: export CARGO_PROFILE_RELEASE_CODEGEN_UNITS := 1

.PHONY: build
build: ## leaves one self-contained binary, site embedded, at target/release/leasehold
	@scripts/setup build
	@$(MAKE) --no-print-directory binary

.PHONY: run
run: ## builds and serves your configuration: make run CONFIG=leasehold.toml
	@test -n '$(CONFIG)' || { echo 'CONFIG is missing: make run CONFIG=leasehold.toml' >&2; exit 2; }
	@test -r '$(CONFIG)' || { echo 'cannot read $(CONFIG)' >&2; exit 2; }
	@scripts/setup build
	@$(MAKE) --no-print-directory binary
	@exec $(BINARY) serve --config '$(CONFIG)'

.PHONY: bench
bench: ## performance goals and measured figures
	@scripts/setup build servers
	@scripts/site
	@cargo build --locked --release -p leasehold -p leasehold-bench
	@exec $(BINARY)-bench

.PHONY: prove
# Ten times the cases of each property test, most of which have 256.
prove: export PROPTEST_CASES := 2560
prove: ## the long fault runs
	@scripts/setup build servers monitoring test
	@scripts/site
	@cargo nextest run --locked --workspace --exclude frontend --exclude bindings --features app/ssr --profile prove --run-ignored all

.PHONY: mutants
mutants: ## injects each known fault into the code, one at a time: a test must detect it
	@scripts/setup build servers test
	@scripts/mutants

.PHONY: site
site: ## only the browser build, into target/site
	@scripts/setup build
	@scripts/site

.PHONY: e2e
e2e: ## only the tests in a browser
	@scripts/e2e

.PHONY: lighthouse
lighthouse: ## Lighthouse on every page of the demo
	@scripts/setup build servers browser
	@$(MAKE) --no-print-directory binary
	@scripts/lighthouse

.PHONY: dist
dist: build ## an archive of the release binary with its checksum, in target/dist
	@scripts/dist

.PHONY: fmt
fmt: ## formats the code
	@cargo fmt

.PHONY: clean
clean: ## removes everything built here; tools stay in the cache
	@rm -rf target end2end/test-results end2end/playwright-report

# Site, then the binary that embeds it, for targets after the set-up.
.PHONY: binary
binary:
	@scripts/site
	@cargo build --locked --release -p leasehold
