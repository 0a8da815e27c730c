# One static binary and the certificates that https targets need; no shell, no
# package manager, no root. It is built from a checkout with its .git, which has
# the version:
#
#   docker build -t pitot .
#   docker run --rm -v "$PWD/runs:/work/runs" pitot run http://host:8000 --rate 4
#
# The directory of runs must be writable by user 65532, or give --user "$(id -u)".
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS=linux
ARG TARGETARCH=amd64
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN git config --global --add safe.directory /src && \
    scripts/release.sh /dist "$TARGETOS/$TARGETARCH" && mv /dist/pitot-v* /dist/pitot && \
    mkdir -p /empty/tmp /empty/work/runs && chmod 1777 /empty/tmp

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /dist/pitot /
COPY --from=build --chown=65532:65532 /empty /
USER 65532:65532
WORKDIR /work
ENTRYPOINT ["/pitot"]
CMD ["--help"]
