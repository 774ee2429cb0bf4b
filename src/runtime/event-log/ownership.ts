import type { Queryable } from '../../contracts/db.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'

/**
 * Who may write what on a server that several processes share. Each has a number, its epoch; 0 where there is but one process, on a file.
 *
 * A process that stood still may wake after another one has taken over its events. So every statement that stores something asks whether the
 * process is still the owner, and keeps its row from being locked by others until the commit: the one that takes over locks the row, and knows then
 * that nothing is under way. No advisory lock, which a role without any right could take.
 */

/** The owner of an event that belongs to no process: it is there for the one that delivers its key, or, without a key, for any. */
export const NO_PROCESS = 0
/** The owner of an event that waits for a group which the process that had it lacks: whoever has the group takes it. */
export const WAITS_FOR_GROUP = -1

/** An expression that has the epoch as its value, or null when the process is not the owner any more. */
export const ownerExpression = (epoch: number): string =>
  `(SELECT epoch FROM heddle_process WHERE epoch = ${epoch} AND adopter IS NULL FOR KEY SHARE)`

/**
 * Waits for everything that a process ($1) is storing, whose `adopter` is set. The row is locked for good before it is written, so a transaction that
 * still sees it as it was cannot lock it any more, either.
 */
export const AWAIT_INSERTS = `
  WITH locked AS (SELECT epoch FROM heddle_process WHERE epoch = $1 FOR UPDATE)
  UPDATE heddle_process AS ended SET is_clean = ended.is_clean FROM locked WHERE ended.epoch = locked.epoch`

/** True for the error of an INSERT that found that the process is not the owner any more. */
export const isTakenOver = (error: unknown): boolean =>
  messageOf(error).includes('column "owner" of relation "heddle_event"')

export const TAKEN_OVER = 'Another process has taken over the events of this one'

/** The end of a condition that only the process's own rows fulfil. */
export const andOwned = (epoch: number): string => (epoch === 0 ? '' : ` AND owner = ${epoch}`)

/** For statements that change more than rows of events. @throws EVENT_BUS_UNAVAILABLE when the process is not the owner any more */
export async function requireOwner(tx: Queryable, epoch: number): Promise<void> {
  if (epoch === 0) return
  const row = await tx.queryOne<{ owner: number | null }>(`SELECT ${ownerExpression(epoch)} AS owner`)
  if (row?.owner != null) return
  throw new HeddleError('EVENT_BUS_UNAVAILABLE', TAKEN_OVER)
}
