import type { LogLevel } from '../../contracts/logger.ts'
import type { EventLog } from '../../runtime/event-log/event-log.ts'
import type { Backlog } from './backlog.ts'
import type { ChangeWriter } from './change-writer.ts'
import type { KnownGroups } from './known-groups.ts'
import { countReleased, forgetWaiting, readGroups, readReleased } from './log-reader.ts'

/** How often it is looked which groups are known: on a file, and where other processes have groups, too; milliseconds. */
const FILE_MS = 30_000
const SERVER_MS = 2000
/** What waits for groups that are not here, at most, as a share of EVENT_BUS_MAX_STORED: publishers need the rest. */
const WAITING_SHARE = 0.5
/** How often it is counted what waits for groups that no process has, milliseconds. */
const COUNT_MS = 60_000

export interface GroupKeeperOptions {
  log: EventLog
  groups: KnownGroups
  backlog: Backlog
  writer: ChangeWriter
  /** EVENT_BUS_MAX_STORED. */
  maxStored: number
  report: (level: LogLevel, message: string) => void
}

/** Keeps the known groups and what is stored of them the same, and forgets those that nobody has had for long. */
export class GroupKeeper {
  readonly #options: GroupKeeperOptions
  #lookedMs = Number.NEGATIVE_INFINITY
  #countedMs = Number.NEGATIVE_INFINITY

  constructor(options: GroupKeeperOptions) {
    this.#options = options
  }

  /** Reads which groups are known. @returns those that are to be forgotten */
  async learn(): Promise<{ event: string; group: string }[]> {
    const { log, groups } = this.#options
    return groups.learn(await readGroups(log.database), Date.now())
  }

  /** Looks once in a while. */
  async look(nowMs: number): Promise<void> {
    const { log, groups } = this.#options
    if (!log.memory.isOpen || nowMs - this.#lookedMs < (groups.isShared ? SERVER_MS : FILE_MS)) return
    this.#lookedMs = nowMs
    for (const { event, group } of await this.learn()) await this.#forget(event, group, 'has not been here for 7 days')
    await this.findReleased()
    if (groups.isShared && nowMs - this.#countedMs >= COUNT_MS) {
      this.#countedMs = nowMs
      groups.counted(groups.absent.length === 0 ? [] : await countReleased(log.database))
    }
    if (groups.waiting <= this.#options.maxStored * WAITING_SHARE) return
    const [most] = groups.absent.sort((a, b) => b.waiting - a.waiting)
    if (most !== undefined) await this.#forget(most.event, most.group, 'is not here, and the event log is half full')
  }

  /** Other processes have released events that wait for groups of this one. */
  async findReleased(): Promise<void> {
    const { log, groups, backlog } = this.#options
    if (!groups.isShared) return
    for (const { event, group } of await readReleased(log.database, groups.names))
      if (groups.isHere(event, group)) backlog.groupReturned(event, group)
  }

  async #forget(event: string, group: string, reason: string): Promise<void> {
    const { log, groups, writer, report } = this.#options
    await log.database.execute('DELETE FROM heddle_group WHERE event = $1 AND grp = $2', [event, group])
    groups.forgotten(event, group)
    await writer.written()
    let count = 0
    for (let forgotten = 1; forgotten > 0; count += forgotten) {
      forgotten = await forgetWaiting(log.database, event, group)
      await new Promise(setImmediate)
    }
    report('WARNING', `${group}, a subscriber of ${event}, ${reason}: ${count} stored events are forgotten for it`)
  }
}
