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
 */
export function effectTables(dialect: 'sqlite' | 'postgres'): string[] {
  return [
    `CREATE TABLE IF NOT EXISTS heddle_inbox (
      event_id TEXT NOT NULL, grp TEXT NOT NULL, at_ms BIGINT NOT NULL, PRIMARY KEY (event_id, grp))${TABLE_END[dialect]}`,
  ]
}

export const EFFECT_TABLES = ['heddle_inbox'] as const
