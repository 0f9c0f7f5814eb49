# Every recipe is a plain command that also works without just. CI runs `check` and nothing else.

# List the recipes.
default:
    @just --list --unsorted

# Everything CI runs, the quick parts first.
check: fmt lint test doc deny readme clients conformance corpus image

# The sources are formatted.
fmt:
    cargo fmt --check

# Clippy has nothing to say.
lint:
    cargo clippy --all-targets --locked -- -D warnings

# The tests pass.
test:
    cargo test --locked

# The documentation builds and its links lead somewhere.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --locked

# The dependencies are what deny.toml allows.
deny:
    .ci/deny

# What the README shows is what happens.
readme: build
    .ci/readme

# Other people's MCP clients can use the server.
clients: build
    tests/clients/run target/debug/openapi-mcp
    tests/servers/run target/debug/openapi-mcp

# The server passes the MCP conformance suite.
conformance: build
    tests/conformance/run target/debug/openapi-mcp

# The container image builds and runs; no container engine is needed.
image:
    deploy/image-check

# How fast it is.
bench:
    cargo bench --bench speed

# The binary that the checks above run.
[private]
build:
    cargo build --locked

# Looks for inputs that break us; needs a nightly toolchain and cargo-fuzz.
fuzz target="document" seconds="60":
    cargo +nightly fuzz run {{ target }} -- -max_total_time={{ seconds }}

# Checks every document of OPENAPI_MCP_CORPUS with the validators that clients use.
corpus: build
    tests/corpus/run target/debug/openapi-mcp

# The tests with the numbers and waits that SECURITY.md states, where those take minutes.
soak:
    SOAK=1 cargo test --locked --test it

# 64 and 256 calls in flight for a minute each: nothing lost, nothing crossed, memory flat.
load:
    cargo build --release --locked
    python3 -B tests/load/load.py target/release/openapi-mcp
