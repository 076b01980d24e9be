.PHONY: demo test test-cluster lint

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
