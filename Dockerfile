# The images of Fermata: `server`, and `sandbox`, from which each program gets a container of its own.
#
#   docker build --target server --build-arg VERSION="$(git describe --tags --always --dirty)" -t fermata .
#   docker build --target sandbox -t fermata-sandbox .
#
# Any image with Python 3.11 or later becomes a sandbox image with the libraries that it has:
#
#   FROM python:3.13-slim
#   COPY --from=fermata-sandbox /opt/fermata /opt/fermata
#   USER 1000:1000

ARG GO=golang:1.26
# To get the same libraries tomorrow, give a digest here: debian:12-slim@sha256:…
ARG BASE=debian:12-slim

# This stage comes first because older builders build every stage up to the requested one.
FROM ${BASE} AS sandbox
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        fonts-dejavu-core \
        fonts-noto-cjk \
        jq \
        python3 \
        python3-matplotlib \
        python3-numpy \
        python3-openpyxl \
        python3-pandas \
        python3-scipy \
        python3-sklearn \
    && rm -rf /var/lib/apt/lists/* \
    # Letters that the first font lacks, such as Chinese ones, come from the second.
    && echo "font.family: DejaVu Sans, Noto Sans CJK JP" >> /etc/matplotlibrc \
    && useradd --uid 1000 --home-dir /mnt/data --no-create-home --shell /bin/bash sandbox \
    && mkdir -p /mnt/data
COPY python/runner /opt/fermata
# Compile the runner and build matplotlib's font cache now, not at every start.
RUN python3 -m compileall -q /opt/fermata \
    && MPLCONFIGDIR=/opt/fermata/cache XDG_CACHE_HOME=/opt/fermata/cache python3 -c 'import matplotlib.pyplot' \
    && chmod -R a+rX /opt/fermata
USER 1000:1000
WORKDIR /mnt/data
ENTRYPOINT ["python3", "-I", "/opt/fermata", "sandbox"]

FROM ${GO} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# The state is kept in a volume on /var/lib/fermata. A new volume takes over the owner of this directory.
# What `fermata version` says; the image is built without the repository, which would tell.
ARG VERSION=unreleased
RUN CGO_ENABLED=0 go build -trimpath -tags=validator_novalidatefn -ldflags="-s -w -X main.release=${VERSION}" -o /out/usr/local/bin/fermata ./cmd/fermata \
    && mkdir -p /out/var/lib/fermata /out/etc/ssl/certs \
    && cp /etc/ssl/certs/ca-certificates.crt /out/etc/ssl/certs/

FROM scratch AS server
COPY --from=build --chown=65532:65532 /out/var/lib/fermata /var/lib/fermata
COPY --from=build /out/etc /etc
COPY --from=build /out/usr /usr
USER 65532:65532
WORKDIR /var/lib/fermata
ENV FERMATA_ADDR=:8000 FERMATA_SANDBOX=docker FERMATA_STATE_DIR=/var/lib/fermata
EXPOSE 8000
HEALTHCHECK --interval=5s --timeout=6s --start-period=60s CMD ["/usr/local/bin/fermata", "health"]
ENTRYPOINT ["/usr/local/bin/fermata"]
CMD ["serve"]
