# Everything a person does with this repository. Each target does its own set-up (scripts/setup).
# The work is in scripts/, so that it can be read, and run, one step at a time.

.DEFAULT_GOAL := help
.PHONY: help run quick test dist bench chaos fuzz simulate mutants upgrade audit fmt lint clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.* ## \(.*\)/make \1	\2/p' $(MAKEFILE_LIST) | expand -t 14

run: ## build, and start the demo: gateway, simulated providers and a funded account on http://127.0.0.1:8080
	@scripts/run

quick: ## for the daily loop: format, lints, unit tests, and the tests that need neither a database nor an SDK
	@scripts/test quick

test: ## everything that must hold: format, lints, tests, real SDKs, real PostgreSQL; ONLY="store node" for some parts
	@scripts/test $(ONLY)

dist: ## the executable to ship: optimized as a whole, by a profile of real calls, and laid out by it (two long builds)
	@scripts/dist

bench: ## measure against a bare pass-through proxy (needs two quiet cores)
	@scripts/bench

chaos: ## the till under fire: races, storms, and MINUTES=5 each of kills and full disks; one line of counts per experiment
	@scripts/chaos $(or $(MINUTES),5)

fuzz: ## the readers of requests, replies and events against mutated input, for SECONDS=60 each
	@scripts/fuzz $(or $(SECONDS),60)

simulate: ## the till in a simulated world, with crashes: SEEDS=500 of them, or SEED=7 alone and aloud
	@scripts/simulate "$(SEEDS)" "$(SEED)"

mutants: ## change the code of prices and ledger a thousand times; every change must be noticed (hours); FILES=… for some
	@scripts/mutants $(FILES)

upgrade: ## the executable of the commit before (or of REVISION=…) beside this one on one PostgreSQL database
	@scripts/upgrade $(REVISION)

audit: ## before a release: cargo-deny with the current database of advisories; fails where that cannot be reached
	@scripts/audit

fmt: ## format the Rust code
	cargo fmt --all

lint: ## what `make test` says about format and lints, and nothing else
	@scripts/setup run
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features --locked -- -D warnings

clean: ## remove all that was built or installed here
	cargo clean
	rm -rf tests/sdk/node/node_modules
