# Every recipe is a plain command that also works without just. CI runs `check`.

# List the recipes.
default:
    @just --list --unsorted

# Run everything that CI runs.
check:
    .ci/run

# Check the format of the sources.
fmt:
    cargo fmt --check

# Run Clippy; a warning is an error.
lint:
    cargo clippy --all-targets --locked -- -D warnings

# Run all tests.
test:
    cargo test --locked

# Accept what changed on purpose: generated pages, the schema of the configuration, and the snapshots of tools.
update:
    UPDATE=1 cargo test --locked --lib
    UPDATE=1 INSTA_UPDATE=always cargo test --locked --test it -- documents::corpus documents::petstore_tools

# Build the documentation of the library, and check its links.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --locked

# Check the dependencies against deny.toml.
deny:
    .ci/deny

# Run the README's first command and check its output.
readme: build
    .ci/readme

# Use the server with third-party MCP clients, and call APIs of third-party frameworks.
clients: build
    tests/clients/run target/debug/openapi-mcp
    tests/servers/run target/debug/openapi-mcp

# Send spans through a collector, and run replicas behind haproxy with Redis and with Valkey.
operations: build
    tests/collector/run target/debug/openapi-mcp
    tests/replicas/run target/debug/openapi-mcp
    .ci/valkey

# Run the MCP conformance suite.
conformance: build
    tests/conformance/run target/debug/openapi-mcp

# Drive test suites of others; tests/scores/README.md says where their data comes from.
scores: build
    tests/scores/run target/debug/openapi-mcp

# Build the book into target/book/site.
book:
    tests/book/run

# Use the server's page in a browser.
page: build
    tests/page/run target/debug/openapi-mcp

# Take the pictures of the documentation again.
pictures: build
    RENEW_PICTURES=1 tests/page/run target/debug/openapi-mcp

# Pack for npm, PyPI and MCPB, install each in a clean environment, and run it.
packages: build
    tests/packages/run target/debug/openapi-mcp

# Build and run the container image; no container engine is needed.
image:
    deploy/image-check

# Compare the instructions of starts and calls with tests/perf/baseline; needs valgrind.
perf:
    cargo build --profile perf --locked
    tests/perf/run target/perf/openapi-mcp

# Build the binary that the checks use.
[private]
build:
    cargo build --locked

# Fuzz one target; needs a nightly toolchain and cargo-fuzz.
fuzz target="document" seconds="60":
    cargo +nightly fuzz run {{ target }} -- -max_total_time={{ seconds }}

# Mutate one file with cargo-mutants, and list the mutations that no test detects.
mutants file:
    cargo mutants --in-place --output target --file {{ file }}

# Check the tools of every document in OPENAPI_MCP_CORPUS with the validators that clients use, and read OPENAPI_DIRECTORY.
corpus: build
    tests/corpus/run target/debug/openapi-mcp
    tests/corpus/directory target/debug/openapi-mcp

# Run the tests with full sizes and waits, and strict time limits; takes minutes.
soak:
    SOAK=1 cargo test --locked --test it

# Make 64 and then 256 concurrent calls, for a minute each, and check that every reply arrives at its own call and memory does not grow.
load:
    cargo build --release --locked
    python3 -B tests/load/load.py target/release/openapi-mcp
