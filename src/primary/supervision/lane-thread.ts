import type { BlackBox } from '../../contracts/registry.ts'
import type { Holder } from '../../transport/messages.ts'
import type { Lane, LaneRole } from '../dispatch/lane.ts'
import { LaneChildren } from './lane-children.ts'
import type { Watchdog } from './watchdog.ts'

/** One thread of a lane: in its slot, standing by, or about to take over. */
export class LaneThread {
  readonly lane: Lane
  readonly watchdog: Watchdog
  /** Ends the thread. */
  readonly abort: AbortController
  /** Processes that its plugins have started. */
  readonly children = new LaneChildren()
  /** Files of the plugins that it was started without. */
  readonly without: ReadonlySet<string>
  /** File of the plugin that is being booted; null when none is. */
  bootingFile: string | null = null
  /** Files of all plugins that it has begun to boot. */
  readonly bootedFiles: string[] = []
  /** When it had booted; null before. By `steadyMs`. */
  bootedMs: number | null = null
  /** Told how the boot has ended: null, or why it failed. Null while nothing waits for that. */
  onBootEnd: ((fault: string | null) => void) | null = null
  /** It is about to be replaced: handlers that do not settle hold its places. */
  isWornOut = false
  /** Something in it has ended it, and its thread leaves. */
  isDying = false
  /** Who has opened so many files there that it is ended; null while nobody has. */
  holder: Holder | null = null
  /** What is known of its death; null while it lives. */
  box: BlackBox | null = null
  /** Why it died; null while it lives. */
  deathMessage: string | null = null
  /** Resolves when the thread has ended. */
  ended: Promise<void> = Promise.resolve()

  constructor(lane: Lane, watchdog: Watchdog, abort: AbortController, without: ReadonlySet<string> = new Set()) {
    this.lane = lane
    this.watchdog = watchdog
    this.abort = abort
    this.without = without
  }

  /** It has died, or is dying: another thread may take its place. */
  get isLost(): boolean {
    return this.isDying || this.lane.state === 'dead'
  }
}

/** One lane's slot: threads come and go in it. */
export interface LaneSlot {
  readonly index: number
  readonly role: LaneRole
  thread: LaneThread
  /** Works beside a thread that stands still, until that one goes on or has ended. */
  standby: LaneThread | null
  isStandbyStarting: boolean
  restarts: number
  /** Newest first. */
  deaths: BlackBox[]
  /** Its thread died in a plugin's boot, and is about to be started without that plugin. */
  isRetried: boolean
  /** Timer of the restart that is due. */
  restartTimer: NodeJS.Timeout | undefined
}

export function slotWith(thread: LaneThread): LaneSlot {
  const { index, role } = thread.lane
  return {
    index,
    role,
    thread,
    standby: null,
    isStandbyStarting: false,
    restarts: 0,
    deaths: [],
    isRetried: false,
    restartTimer: undefined,
  }
}
