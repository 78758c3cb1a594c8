# The command `charter` in an empty image: a static binary (musl), no shell, not root.
#
#     docker build -t charter .
#     docker run --rm -v "$PWD:/data" charter check payment.yaml
#
# Not part of CI: the machines that run it cannot reach an image registry.

FROM rust:1.95-alpine AS build
RUN apk add --no-cache musl-dev
WORKDIR /src
COPY . .
RUN cargo build --profile dist --locked --bin charter && mkdir /data

FROM scratch
COPY --from=build /src/target/dist/charter /charter
# Journals and workspaces are files of the mounted folder.
COPY --from=build --chown=10001:10001 /data /data
WORKDIR /data
USER 10001:10001
ENTRYPOINT ["/charter"]
