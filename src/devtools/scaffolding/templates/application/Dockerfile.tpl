# docker build -t {{name}} .
# Debian 13: the listener's binary for Node 24 needs its glibc, and Alpine has none.
FROM node:24-trixie AS build
WORKDIR /app
# *.tgz: packages that are on no registry.
COPY package.json package-lock.json *.tgz ./
RUN npm ci --omit=dev
COPY . .

FROM node:24-trixie-slim
# /system is served inside the container alone, on 127.0.0.1. Whoever runs the container restarts it.
ENV NODE_ENV=production GUARDIAN=false SHUTDOWN_DELAY_MS=5000 HTTP_HOST=0.0.0.0 HTTP_PORT=8000 SYSTEM_PORT=8001 LOG_FORMAT=json SQLITE_PATH=/var/lib/heddle/service.db
WORKDIR /app
RUN install -d -o node -g node /var/lib/heddle
COPY --from=build /app ./
USER 1000:1000
EXPOSE 8000
STOPSIGNAL SIGTERM
# The first hour may be its start: on a busy machine, or a large database.
HEALTHCHECK --interval=10s --timeout=3s --start-period=1h --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.SYSTEM_PORT}/system/health/ready`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# Needs AUTH_SECRET_KEY.
ENTRYPOINT ["node", "node_modules/heddle/dist/src/heddle.cjs", "start"]
