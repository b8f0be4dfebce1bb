# The image of OneClaw: two static binaries on an empty base, the bot and oneclaw-lab, which tries it.
#
#   docker build -t oneclaw .
#   docker run -d -v oneclaw:/data -e TELEGRAM_BOT_TOKEN -e OPENAI_API_KEY oneclaw
#
# The tools exec and browser need a shell, bubblewrap and Chromium, which the empty
# base has not. This one has:
#
#   docker build -t oneclaw --build-arg BASE=full .
#
# .ci/run executes the RUN lines of the stage "build" as they stand, in a copy of
# the files. Their paths are therefore relative.

ARG BASE=scratch

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG VERSION=devel
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -trimpath -tags timetzdata -gcflags=all=-dwarf=false \
    -ldflags "-s -w -X main.version=${VERSION}" -o out/ ./cmd/oneclaw ./cmd/oneclaw-lab
RUN mkdir -p out/data out/tmp && chmod 700 out/data && chmod 1777 out/tmp

FROM debian:trixie-slim AS full
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap chromium fonts-liberation \
    && rm -rf /var/lib/apt/lists/*

FROM ${BASE}
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /src/out/tmp /tmp
COPY --from=build --chown=65532:65532 /src/out/data /data
COPY --from=build /src/out/oneclaw /src/out/oneclaw-lab /
# Inside, the address has to be reachable for "docker run -p"; what is published,
# and to whom, is said there.
ENV HOME=/data ONECLAW_DATA_DIR=/data ONECLAW_LISTEN=:8787
USER 65532:65532
VOLUME /data
EXPOSE 8787
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["/oneclaw", "health"]
ENTRYPOINT ["/oneclaw"]
CMD ["run"]
