const { resolve } = require('node:path')

const delayMs = Number(process.env.SHUTDOWN_DELAY_MS || 5_000)
/** Time after which heddle ends by itself: SHUTDOWN_DELAY_MS, SHUTDOWN_TIMEOUT_MS (or its default), and 5 s to close the rest. */
const shutdownMs = delayMs + Number(process.env.SHUTDOWN_TIMEOUT_MS || 10_000) + 5_000

/**
 * `pm2 start deploy/ecosystem.config.cjs`: two processes on one port; `pm2 reload heddle` replaces them one after the other.
 * Settings come from the environment and from `.env` in the checkout. README.md in this folder has the details.
 */
module.exports = {
  apps: [
    {
      name: 'heddle',
      cwd: resolve(__dirname, '..'),
      // The same command as `npm start`, without pm2's wrapper.
      script: resolve(__dirname, '../node_modules/.bin/node'),
      interpreter: 'none',
      args: '--require ./src/preload.cjs src/main.ts',
      // Not cluster: a reload would run two processes with one REPLICA_ID at a time, the log would go to pm2's own, and the
      // processes would end with pm2's daemon.
      exec_mode: 'fork',
      instances: 2,
      // pm2 replaces the next process when this one reports that it serves.
      wait_ready: true,
      listen_timeout: 60_000,
      // pm2 kills the process after this time, so it must be longer than heddle takes to end by itself.
      kill_timeout: shutdownMs + 2_000,
      // 78: the environment is not valid, so another start would fail too.
      stop_exit_codes: [78],
      exp_backoff_restart_delay: 200,
      env: {
        NODE_ENV: 'production',
        GUARDIAN: 'false',
        HTTP_REUSE_PORT: 'true',
        SHUTDOWN_DELAY_MS: String(delayMs),
        // With a dead plugin a process does not report that it serves: the reload stops there.
        BOOT_STRICT: 'true',
        // /system is on a port of its own for each process, on 127.0.0.1: the log names it.
        SYSTEM_PORT: '0',
        // One process alone can keep events in an SQLite file. On PostgreSQL: `EVENT_BUS_DRIVER=database pm2 start …`.
        EVENT_BUS_DRIVER: process.env.EVENT_BUS_DRIVER || 'in_process',
      },
    },
  ],
}
