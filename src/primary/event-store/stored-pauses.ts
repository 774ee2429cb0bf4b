// Paused subscribers, kept in the database.
import { ownTransaction, type StoreDatabase } from '../../runtime/event-store/database.ts'
import type { Hub } from '../events/hub.ts'
import type { Pause } from '../events/pauses.ts'
import type { Groups } from './groups.ts'
import type { Hand } from './hand.ts'
import type { Reader } from './reader.ts'

export interface StoredPausesParts {
  hub: Hub
  hand: Hand
  reader: Reader
  groups: Groups
  database: () => StoreDatabase
  /** Null on SQLite. */
  members: { readonly lease: { readonly id: number }; readonly doorbell: { members(): void } } | null
}

export class StoredPauses {
  readonly #parts: StoredPausesParts
  #loading: Promise<void> = Promise.resolve()

  constructor(parts: StoredPausesParts) {
    this.#parts = parts
  }

  /** Learns which subscribers are paused. On a server others may have paused or resumed some. */
  load(): Promise<void> {
    // One after another: an older answer takes the place of no newer one.
    const loading = this.#loading.then(() => this.#load())
    this.#loading = loading.catch(() => {})
    return loading
  }

  async #load(): Promise<void> {
    const rows = await this.#parts
      .database()
      .query<{ event: string; grp: string; since_ms: number }>('SELECT event, grp, since_ms FROM heddle_paused')
    this.#take(rows.map(({ event, grp, since_ms }) => ({ event, group: grp, sinceMs: Number(since_ms) })))
  }

  #take(pauses: readonly Pause[]): void {
    const { hub, hand, reader, groups } = this.#parts
    for (const { event, group } of hub.setPauses(pauses)) {
      if (hub.pauses.has(event, group)) {
        hand.takeBackOf(event, group)
        continue
      }
      const id = groups.idOf(event, group)
      if (id !== undefined) reader.resume(id)
    }
  }

  /** Pauses or resumes subscribers, in all processes. */
  async change(pauses: readonly Pause[], isPaused: boolean): Promise<void> {
    const { members } = this.#parts
    await ownTransaction(this.#parts.database(), async (tx) => {
      for (const { event, group, sinceMs } of pauses)
        if (isPaused)
          await tx.execute(
            'INSERT INTO heddle_paused (event, grp, since_ms) VALUES ($1, $2, $3) ON CONFLICT (event, grp) DO NOTHING',
            [event, group, sinceMs],
          )
        else await tx.execute('DELETE FROM heddle_paused WHERE event = $1 AND grp = $2', [event, group])
      // The others look at it once a second.
      if (members !== null)
        await tx.execute('UPDATE heddle_member SET groups = groups + 1 WHERE id = $1', [members.lease.id])
    })
    await this.load()
    members?.doorbell.members()
  }
}
