# A worker, a janitor, the dashboard or the server in a container; the board is a volume:
#
#   docker build -t dibs .
#   docker run --rm -v /srv/tasks:/board dibs ls
#   docker run --rm -it -v /srv/tasks:/board dibs
#   docker run --rm --init -v /srv/tasks:/board dibs reap --every 30s
#   docker run --rm --init -v /srv/tasks:/board -p 127.0.0.1:7373:7373 dibs serve --listen 0.0.0.0:7373 --behind-proxy
#
# Give each container its own host name, or DIBS_HOST: evidence on a holder names its host.
FROM python:3.13-slim AS build
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --wheel-dir /wheels '.[serve]'

FROM python:3.13-slim
# pip compiles what it installs: without byte code each verb would take twice as long.
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index /wheels/*.whl \
    && useradd --create-home --uid 1000 dibs \
    && install -d -o dibs /board
USER 1000
ENV DIBS_BOARD=/board
WORKDIR /board
VOLUME /board
ENTRYPOINT ["dibs"]
