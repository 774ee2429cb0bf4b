process.env.INSTANCES ||= '2'
const { apps } = require('./ecosystem.config.cjs')

/** Variables of all processes of the elastic stage. RDB_*, KV_* and AUTH_SECRET_KEY come from the environment or from `.env` in the checkout. */
const env = {
  NODE_ENV: 'production',
  GUARDIAN: 'false',
  PROCESSES: '1',
  EVENT_BUS_DRIVER: 'keyvalue_streams',
  DB_AUTO_MIGRATE: 'false',
  SCHEDULER_ENABLED: 'false',
  SYSTEM_PORT: '0',
  SHUTDOWN_DELAY_MS: apps[0].env.SHUTDOWN_DELAY_MS,
}

/**
 * `pm2 start deploy/elastic.config.cjs`: two workers that share one port, and one leader. Only a supervisor needs the leader's port.
 * Migrate first: README.md in this folder has the order.
 */
module.exports = {
  apps: [
    { ...apps[0], name: 'heddle-worker', env: { ...apps[0].env, ...env } },
    {
      ...apps[0],
      name: 'heddle-leader',
      instances: 1,
      env: { ...env, SCHEDULER_ENABLED: 'true', HTTP_PORT: process.env.LEADER_PORT || '8010' },
    },
  ],
}
