const { existsSync, readFileSync } = require('node:fs')
const { resolve } = require('node:path')
const { parseEnv } = require('node:util')

const root = resolve(__dirname, '..')
const dotEnv = existsSync(resolve(root, '.env')) ? parseEnv(readFileSync(resolve(root, '.env'), 'utf8')) : {}
/** A setting in milliseconds, as heddle reads it: the environment wins over `.env`. */
const ms = (name, fallback) => Number(process.env[name] || dotEnv[name] || fallback)

/** Processes on one port. SQLite has room for one: a second one refuses to start. On PostgreSQL: `INSTANCES=2 pm2 start …`. */
const instances = Number(process.env.INSTANCES || 1)
/** `/system/health/ready` is 503 for so long before a process stops. */
const delayMs = ms('SHUTDOWN_DELAY_MS', 5_000)
/** heddle ends by itself within SHUTDOWN_DELAY_MS, SHUTDOWN_TIMEOUT_MS and 4 s. */
const stopMs = delayMs + ms('SHUTDOWN_TIMEOUT_MS', 10_000) + 4_000

/**
 * `pm2 start deploy/ecosystem.config.cjs`; `pm2 reload heddle` replaces the processes one after the other.
 * Settings come from the environment and from `.env` in the checkout. README.md in this folder has the details.
 */
module.exports = {
  apps: [
    {
      name: 'heddle',
      cwd: root,
      // The same command as `npm start`, without pm2's wrapper.
      script: resolve(__dirname, '../node_modules/.bin/node'),
      interpreter: 'none',
      args: '--require ./src/preload.cjs src/main.ts',
      // Not cluster: a reload would run two processes with one REPLICA_ID at a time, the log would go to pm2's own, and the
      // processes would end with pm2's daemon.
      exec_mode: 'fork',
      instances,
      // pm2 replaces the next process when this one reports that it serves. After listen_timeout it would do so in any case, and
      // take away the last process that serves: an hour is longer than any start.
      wait_ready: true,
      listen_timeout: 3_600_000,
      // pm2 kills the process after this time, so it must be longer than heddle takes to end by itself.
      kill_timeout: stopMs + 6_000,
      // 78: the environment is not valid, so another start would fail too.
      stop_exit_codes: [78],
      exp_backoff_restart_delay: 200,
      env: {
        NODE_ENV: 'production',
        GUARDIAN: 'false',
        // Processes of a guardian, which `.env` may ask for. Here pm2 starts them.
        PROCESSES: '1',
        HTTP_REUSE_PORT: String(instances > 1),
        SHUTDOWN_DELAY_MS: String(delayMs),
        // With a dead plugin one of several processes does not report that it serves: the reload stops there.
        BOOT_STRICT: String(instances > 1),
        // /system is on a port of its own for each process, on 127.0.0.1: the log names it.
        SYSTEM_PORT: '0',
        EVENT_BUS_DRIVER: 'database',
      },
    },
  ],
}
