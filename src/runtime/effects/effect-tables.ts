/** What is different in the databases' own SQL. */
const TABLE_END = {
  // Its rows are hardly more than their key.
  sqlite: ' WITHOUT ROWID',
  postgres: '',
} as const

/**
 * The tables behind effects that happen once. They are part of the event log: made with it, and of its version.
 *
 * - `heddle_inbox`: events that a transactional subscriber (`grp`) has handled: see inbox.ts. `at_ms`: when, milliseconds since the epoch.
 * - `heddle_idempotency`: answers to requests with an `Idempotency-Key`: see idempotency.ts. `scope` is the route and who asks, `print` what is
 *   asked for; `state` is `running` until the answer is stored, then `done`.
 */
export function effectTables(dialect: 'sqlite' | 'postgres'): string[] {
  return [
    `CREATE TABLE IF NOT EXISTS heddle_inbox (
      event_id TEXT NOT NULL, grp TEXT NOT NULL, at_ms BIGINT NOT NULL, PRIMARY KEY (event_id, grp))${TABLE_END[dialect]}`,
    `CREATE TABLE IF NOT EXISTS heddle_idempotency (
      scope TEXT NOT NULL, key TEXT NOT NULL, print TEXT NOT NULL, claim TEXT NOT NULL, state TEXT NOT NULL, status INTEGER,
      headers TEXT, body BYTEA, expires_ms BIGINT NOT NULL, PRIMARY KEY (scope, key))`,
    'CREATE INDEX IF NOT EXISTS heddle_idempotency_expires ON heddle_idempotency (expires_ms)',
  ]
}

export const EFFECT_TABLES = ['heddle_inbox', 'heddle_idempotency'] as const
