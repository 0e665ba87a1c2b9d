# syntax=docker/dockerfile:1

# compute-manager as one static file. Alpine's Rust links against musl, statically.
FROM rust:1.95-alpine AS build
# What the allocator and the cryptography of the binary are built with.
RUN apk add --no-cache ca-certificates make musl-dev
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY .cargo .cargo
COPY crates crates
COPY xtask xtask
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked --package compute-manager \
    && cp target/release/compute-manager /compute-manager

FROM scratch
LABEL org.opencontainers.image.title="compute-manager" \
      org.opencontainers.image.licenses="Apache-2.0"
# Authorities that everybody trusts, for API servers whose kubeconfig names none.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /compute-manager /compute-manager
USER 65532:65532
ENTRYPOINT ["/compute-manager"]
