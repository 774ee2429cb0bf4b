import type { EventLog } from '../../runtime/event-log/event-log.ts'
import type { Hub } from '../events/hub.ts'
import type { ChangeWriter } from './change-writer.ts'
import { readListed, type StoredRow } from './log-reader.ts'

/** What a trial needs of the log. */
interface TrialParts {
  log: EventLog
  hub: Hub
  writer: ChangeWriter
}

/**
 * Reads a suspect to be tried. Its death is noted first, so that the process may die of it and knows.
 * @returns its row; none when the event is gone
 */
export async function readTried(seq: number, { log, hub, writer }: TrialParts): Promise<StoredRow[]> {
  const [stored] = await readListed(log, [seq])
  if (stored === undefined) return []
  const groups = stored.left?.map(({ grp }) => grp) ?? hub.groupsOf(stored.row.event)
  for (const group of groups) {
    const row = stored.left?.find(({ grp }) => grp === group)
    const [attempt, deaths] = [Number(row?.attempt ?? 1), Number(row?.deaths ?? 0)]
    writer.waiting({ seq, group, attempt, deaths: deaths + 1, dueMs: 0, error: row?.error ?? '' })
  }
  await writer.written()
  return readListed(log, [seq])
}
