.PHONY: demo test test-cluster lint bench

demo: ## the whole thing on one machine, in under a minute
	cargo run --release -- demo

test: ## every test; installs the databases they start, where missing
	tests/install-databases.sh
	cargo test --workspace

test-cluster: ## those with several database servers alone: a Galera cluster, a PostgreSQL standby
	tests/install-databases.sh
	cargo test --test cluster

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	.ci/cargo-deny.sh --offline check licenses bans sources
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

RUNS = "limit --ms 50" "limit --ms 500 --tasks 200" "limit --slots 4" "drain" "pickup" "burst" "idle" "kill"

bench: ## the figures of loadtest/README.md; ALONE=… is put before each run, to keep others off the machine
	cargo build --release -p loadtest
	rm -f target/bench.jsonl
	for database in sqlite postgres mariadb; do for run in $(RUNS); do \
		$(ALONE) target/release/loadtest $$run --database $$database --json >target/bench.out || cat target/bench.out; \
		tail -n 1 target/bench.out >>target/bench.jsonl; \
	done; done
	target/release/loadtest figures target/bench.jsonl
