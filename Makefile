.PHONY: demo test lint

demo: ## the whole thing on one machine, in under a minute
	cargo run --release -- demo

test: ## every test; installs the databases they start, where missing
	tests/install-databases.sh
	cargo test --workspace

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps
