# Owns the names of what can be done with this repository. Each target is one script or one line of
# cargo; what they need is installed by scripts/setup, which is quick when all is there.

SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# The same as in scripts/lib/common.sh: tools from the cache, and cargo for shells that do not know it.
CACHE := $(or $(LEASEHOLD_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/leasehold)
export PATH := $(CACHE)/bin:$(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)
BINARY := $(or $(CARGO_TARGET_DIR),target)/release/leasehold

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: export LEASEHOLD_SERVERS_OPTIONAL := 1
demo: ## all set-up, then the console on throwaway servers; prints the address last
	@scripts/setup build servers
	@$(MAKE) --no-print-directory binary
	@exec $(BINARY) demo

.PHONY: test
test: ## all set-up, then every test
	@scripts/test

.PHONY: check
check: ## format, lints of both graphs, unit tests: the inner loop
	@scripts/check

# What is shipped and measured is optimized as a whole: up to a tenth more leases a second, for a build of twenty minutes on
# two cores instead of twelve. The two kinds of build stand side by side in the target folder.
build bench dist: export CARGO_PROFILE_RELEASE_LTO := fat
build bench dist: export CARGO_PROFILE_RELEASE_CODEGEN_UNITS := 1

.PHONY: build
build: ## leaves one self-contained binary, site embedded, at target/release/leasehold
	@scripts/setup build
	@$(MAKE) --no-print-directory binary

.PHONY: run
run: ## builds and serves your configuration: make run CONFIG=leasehold.toml
	@test -n '$(CONFIG)' || { echo 'say which configuration: make run CONFIG=leasehold.toml' >&2; exit 2; }
	@test -r '$(CONFIG)' || { echo 'cannot read $(CONFIG)' >&2; exit 2; }
	@scripts/setup build
	@$(MAKE) --no-print-directory binary
	@exec $(BINARY) serve --config '$(CONFIG)'

.PHONY: bench
bench: build ## goals beside figures
	@scripts/setup servers peers
	@exec $(BINARY) bench

.PHONY: prove
prove: export LEASEHOLD_PROVE := 1
prove: ## the long fault runs
	@scripts/setup build servers peers monitoring test
	@scripts/site
	@cargo nextest run --locked -p leasehold --profile prove --run-ignored all

.PHONY: mutants
mutants: ## each known fault put into the code, one at a time: a test must notice
	@scripts/setup build servers test
	@scripts/mutants

.PHONY: site
site: ## only the browser half, into target/site
	@scripts/setup build
	@scripts/site

.PHONY: e2e
e2e: ## only the tests in a browser
	@scripts/e2e

.PHONY: dist
dist: build ## an archive of the release binary with its checksum, in target/dist
	@scripts/dist

.PHONY: fmt
fmt: ## formats the code
	@cargo fmt

.PHONY: clean
clean: ## removes everything built here; tools stay in the cache
	@rm -rf target end2end/test-results end2end/playwright-report

# Site, then the binary that embeds it, for targets that have done the set-up.
.PHONY: binary
binary:
	@scripts/site
	@cargo build --locked --release -p leasehold
