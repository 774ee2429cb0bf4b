import type { Lane } from '../dispatch/lane.ts'
import { BOOT_TIMEOUT_MS, type LaneThread } from './lane-thread.ts'
import { LOOK_MAX_MS, LOOK_MS } from './lane-watch.ts'

export interface WatchdogOptions {
  /** Every thread that runs, or is about to. */
  threads: () => LaneThread[]
  /** The loop of a thread stands still. Called at each look while it does. */
  onStill: (thread: LaneThread) => void
  /** The loop of a thread turns. */
  onTurning: (thread: LaneThread) => void
  /** A fault of the primary's own while it looked at a lane. */
  onFault: (lane: Lane, error: unknown) => void
}

/** Looks at all lanes again and again, and ends those that do not go on or take too much. */
export class Watchdog {
  readonly #options: WatchdogOptions
  #timer: NodeJS.Timeout | undefined
  #lookedMs = Date.now()

  constructor(options: WatchdogOptions) {
    this.#options = options
  }

  start(): void {
    this.#timer = setInterval(() => this.#look(), LOOK_MS)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    const nowMs = Date.now()
    const sinceLookMs = Math.max(0, nowMs - this.#lookedMs)
    this.#lookedMs = nowMs
    for (const thread of this.#options.threads()) {
      try {
        this.#lookAt(thread, nowMs, sinceLookMs)
      } catch (error) {
        this.#options.onFault(thread.lane, error)
      }
    }
  }

  #lookAt(thread: LaneThread, nowMs: number, sinceLookMs: number): void {
    const { lane, watch } = thread
    if (lane.state === 'dead' || thread.verdict !== 'fine') return
    lane.expire(nowMs)
    // Its code runs no more, but the thread may wait for native work to end.
    if (lane.flight.hasExitReport) thread.abort.abort()
    if (lane.state === 'starting') {
      thread.bootStillMs += Math.min(sinceLookMs, LOOK_MAX_MS)
      thread.bootFault ??= watch.bootFault()
      if (thread.bootFault !== null || thread.bootStillMs > BOOT_TIMEOUT_MS) void this.#terminate(thread, 'boot')
      return
    }
    const verdict = watch.look(nowMs, sinceLookMs)
    lane.responsive = watch.isTurning
    if (!watch.isTurning) this.#options.onStill(thread)
    else this.#options.onTurning(thread)
    if (verdict !== 'fine') void this.#terminate(thread, verdict)
  }

  /** Asks where it stands, then ends it. */
  async #terminate(thread: LaneThread, verdict: LaneThread['verdict']): Promise<void> {
    thread.verdict = verdict
    thread.cpuMsWhileStill = thread.watch.cpuMsWhileStill
    thread.stack = await thread.watch.stack()
    thread.cpuMs = thread.lane.heartbeat.cpuMs
    thread.abort.abort()
  }
}
