const { resolve } = require('node:path')

/** What heddle gets to finish before it ends by itself: its default SHUTDOWN_TIMEOUT_MS and 5 s for closing the rest. */
const shutdownMs = Number(process.env.SHUTDOWN_TIMEOUT_MS || 10_000) + 5_000

/**
 * `pm2 start deploy/ecosystem.config.cjs`: two processes on one port; `pm2 reload heddle` replaces them one after the other.
 * Settings come from the environment and from `.env` in the checkout; README.md in this folder says the rest.
 */
module.exports = {
  apps: [
    {
      name: 'heddle',
      cwd: resolve(__dirname, '..'),
      // What `npm start` runs, with nothing of pm2 around it.
      script: process.execPath,
      interpreter: 'none',
      args: '--import tsx src/main.ts',
      // Not cluster: there a reload runs two processes of one REPLICA_ID at a time, the log lands in pm2's own, and the
      // processes end with pm2's daemon.
      exec_mode: 'fork',
      instances: 2,
      // The next process is replaced when this one says that it serves.
      wait_ready: true,
      listen_timeout: 60_000,
      // pm2 kills what is still there then: later than heddle ends by itself.
      kill_timeout: shutdownMs + 2_000,
      // An environment that is not valid does not get better by another try.
      stop_exit_codes: [78],
      exp_backoff_restart_delay: 200,
      env: { NODE_ENV: 'production', HTTP_REUSE_PORT: 'true' },
    },
  ],
}
