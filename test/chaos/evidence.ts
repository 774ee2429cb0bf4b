import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DeadLetter } from '../../src/contracts/event-bus.ts'
import type { LaneInfo } from '../../src/contracts/registry.ts'
import { Database } from '../../src/stores/sqlite/driver.ts'
import type { Heddle } from '../support/heddle.ts'
import type { StoredUser } from './verdict.ts'

/** What the database file says; the process may be running or gone. */
export function readDatabase({ directory }: Heddle): {
  users: StoredUser[]
  handled: Set<string>
  torn: number[]
} {
  const database = new Database(join(directory, 'service.db'), { readonly: true })
  try {
    const users = database.prepare('SELECT id, email, welcomed_at FROM users').all() as StoredUser[]
    const handled = database.prepare('SELECT event_id FROM chaos_handled').pluck().all() as string[]
    const torn = database.prepare('SELECT number FROM chaos_torn').pluck().all() as number[]
    return { users, handled: new Set(handled), torn }
  } finally {
    database.close()
  }
}

export async function readDeadLetters(heddle: Heddle): Promise<DeadLetter[]> {
  return (await heddle.json('/system/dead-letters')).body as DeadLetter[]
}

/** Whether no lane is at anything. What waits for a lane, or for its next attempt, does not show here. */
export async function isIdle(heddle: Heddle): Promise<boolean> {
  const lanes = (await heddle.json('/system/lanes')).body as LaneInfo[]
  return lanes.every(({ deliveries_in_flight }) => deliveries_in_flight === 0)
}

/** The most memory that the process has had in use, MiB; null where the system does not tell. */
export function peakMemoryMib({ process: { pid } }: Heddle): number | null {
  try {
    const kib = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]
    return kib === undefined ? null : Math.round(Number(kib) / 1024)
  } catch {
    // Not Linux, or the process is gone.
    return null
  }
}
