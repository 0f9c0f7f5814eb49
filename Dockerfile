# An image that contains one static binary and the root certificates: no shell, no packages and no libraries that need updates.
#
#   docker build --tag openapi-mcp .
#   docker run --rm --interactive --no-healthcheck --volume "$PWD/openapi.yaml:/spec.yaml:ro" openapi-mcp serve --spec /spec.yaml
#
# podman and buildah need `--format docker`, because the OCI image format has no HEALTHCHECK.
#
# `deploy/image-check` runs the same steps without a container engine. It reads the build command, the copies, the user and the
# entry point from this file, so keep each of them on one line.

# Debian 12 has glibc 2.36. Since 2.34, name resolution by files and DNS needs no modules on disk, so a static binary resolves
# names even in an empty image. The slim variant contains everything that the build needs: a C compiler, the static C library
# and the certificates.
FROM rust:1.95-slim-bookworm AS build
ARG TARGETARCH
WORKDIR /src
COPY . .
# `crt-static` links the C library into the binary. With `--target`, the flag does not apply to build scripts and procedural macros,
# which must be dynamic. `--locked` uses the dependencies that were tested. A builder that does not set TARGETARCH builds for its own
# architecture.
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
# The root certificates for HTTPS to the API, at the path where the binary looks for them. To trust others, mount a bundle over this
# file.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /openapi-mcp /openapi-mcp
# A number, because the image has no passwd file; 65532 is the usual number of "nonroot".
USER 65532:65532
# The port of `--transport http`. Over stdio, no port is open.
EXPOSE 8080
# The image has no curl, so the binary makes the request. The check uses the port of EXPOSE: set --health-cmd for another port, and
# --no-healthcheck for stdio.
HEALTHCHECK --interval=30s --timeout=3s --start-period=5s CMD ["/openapi-mcp", "health", "http://127.0.0.1:8080/readyz"]
# In the exec form, the binary is process 1 and receives SIGTERM.
ENTRYPOINT ["/openapi-mcp"]
# The server needs a document, so `docker run` without arguments prints the help.
CMD ["serve", "--help"]
