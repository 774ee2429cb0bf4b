import Database from 'better-sqlite3'
import type { Evidence, HandledRow, PlacedRow } from './verdict.ts'

/** What the database says; the process may be running or gone. */
export function readEvidence(path: string): Omit<Evidence, 'asked'> {
  const database = new Database(path, { readonly: true })
  try {
    return {
      placed: database.prepare('SELECT number, key, event_id FROM placed').all() as PlacedRow[],
      handled: database.prepare('SELECT * FROM handled ORDER BY position').all() as HandledRow[],
      billed: database.prepare('SELECT event_id FROM billed').pluck().all() as string[],
      left: database.prepare('SELECT id FROM heddle_event').pluck().all() as string[],
      letters: database.prepare('SELECT event_id FROM heddle_dead').pluck().all() as string[],
    }
  } finally {
    database.close()
  }
}

/** Nothing waits in the log. */
export function isSettled(path: string): boolean {
  const database = new Database(path, { readonly: true })
  try {
    return database.prepare('SELECT seq FROM heddle_event LIMIT 1').get() === undefined
  } finally {
    database.close()
  }
}
