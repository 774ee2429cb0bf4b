/**
 * The tables of stored jobs. Times are milliseconds since the epoch.
 *
 * - `heddle_job`: one row a job, `name` is `<plugin>/<job>`. `due_ms`: when it runs next; null: a date that is over. On a file the runs of
 *   `cron` and `every` with `missed: 'skip'` are not written one by one: there `due_ms` is one of their times. `last_due_ms`: the time of
 *   its last run that was written. `fence`: that of the beat that has placed it. `attempts`: how often the run that is due has begun.
 *   `as_of_ms`: since when it is known as it stands. `gone_ms`: since when nobody registers it; null while somebody does.
 * - `heddle_lease`: who may do what one process alone does. The row `beat` is that of the process that fires jobs: `holder` its own random id,
 *   `identity` where it runs, as JSON. `fence` grows with each election.
 */
export const JOB_TABLES = [
  `CREATE TABLE IF NOT EXISTS heddle_job (
    name TEXT PRIMARY KEY, spec TEXT NOT NULL, due_ms BIGINT, last_due_ms BIGINT, fence BIGINT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0, as_of_ms BIGINT NOT NULL, gone_ms BIGINT)`,
  `CREATE TABLE IF NOT EXISTS heddle_lease (
    name TEXT PRIMARY KEY, holder TEXT NOT NULL, identity TEXT NOT NULL, fence BIGINT NOT NULL, expires_ms BIGINT NOT NULL)`,
]

/** The database's own clock as milliseconds since the epoch. */
export const CLOCK_MS = {
  sqlite: "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
  postgres: 'CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)',
} as const
