# syntax=docker/dockerfile:1
# Only the service: a static binary, certificates and two writable folders.
# docker build --build-arg VERSION=v1.1.0 --build-arg COMMIT=$(git rev-parse HEAD) -t partnerapi:v1.1.0 .

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=
ARG COMMIT=
# The tag omits Gin's MessagePack, as in the Makefile.
RUN CGO_ENABLED=0 go build -tags nomsgpack -trimpath -ldflags \
        "-s -w -X main.version=$VERSION -X main.commit=$COMMIT" -o /out/partnerapi ./cmd/partnerapi && \
    mkdir -p /out/data /out/tmp

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/partnerapi /partnerapi
# A new volume takes over the owner of the folder that it is mounted on.
COPY --from=build --chown=65532:65532 --chmod=700 /out/data /data
COPY --from=build --chown=65532:65532 --chmod=700 /out/tmp /tmp
USER 65532:65532
ENV PARTNERAPI_DATA_DIR=/data PARTNERAPI_LISTEN=0.0.0.0:8080 PARTNERAPI_LOG_FORMAT=json
EXPOSE 8080
ENTRYPOINT ["/partnerapi"]
CMD ["serve"]
