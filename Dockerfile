# An image with one static binary and the certificate roots in it, and nothing else: no shell, no package, no library to patch.
#
#   docker build --tag openapi-mcp .
#   docker run --rm --interactive --no-healthcheck --volume "$PWD/openapi.yaml:/spec.yaml:ro" openapi-mcp serve --spec /spec.yaml
#
# `deploy/image-check` goes through the same steps where there is no container engine. It reads the build command, the copies,
# the user and the entry point from this file, so keep each of them on one line.

# Debian 12 for its glibc 2.36: since 2.34 name resolution needs no modules on disk, so a static binary resolves names even in
# an empty image. The slim variant has all that the build asks for: a C compiler, the static C library and the certificates.
FROM rust:1.95-slim-bookworm AS build
ARG TARGETARCH
WORKDIR /src
COPY . .
# `crt-static` links the C library into the binary. `--target` keeps the flag away from build scripts and procedural macros,
# which must stay dynamic to be loaded. `--locked` builds what was tested. Builders that do not set TARGETARCH build for
# themselves.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    case "${TARGETARCH:-$(dpkg --print-architecture)}" in \
        amd64) arch=x86_64 ;; \
        arm64) arch=aarch64 ;; \
        *) echo "no build for ${TARGETARCH}" >&2; exit 1 ;; \
    esac \
    && RUSTFLAGS="-C target-feature=+crt-static" cargo build --release --locked --bin openapi-mcp --target "$arch-unknown-linux-gnu" \
    && cp "target/$arch-unknown-linux-gnu/release/openapi-mcp" /openapi-mcp

FROM scratch
LABEL org.opencontainers.image.title="openapi-mcp" \
      org.opencontainers.image.description="Turns any OpenAPI document into an MCP server" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"
# The roots for HTTPS to the API, where the binary looks for them. Mount another bundle over this file to trust other roots.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /openapi-mcp /openapi-mcp
# A number, because there is no passwd file to look a name up in; 65532 is the usual one for "nonroot".
USER 65532:65532
# Only for `--transport http`; over stdio no port is opened.
EXPOSE 8080
# The binary asks itself, because there is no curl here. The port is that of EXPOSE; whoever binds another one says so with
# --health-cmd, and whoever serves stdio turns the check off with --no-healthcheck.
HEALTHCHECK --interval=30s --timeout=3s --start-period=5s CMD ["/openapi-mcp", "health", "http://127.0.0.1:8080/healthz"]
# The exec form: the binary is process 1 and gets SIGTERM itself.
ENTRYPOINT ["/openapi-mcp"]
# Nothing can be served before a document is named, so a bare `docker run` says how to name one.
CMD ["serve", "--help"]
