import type { Lane } from '../dispatch/lane.ts'
import { type Berth, BOOT_TIMEOUT_MS } from './lane-thread.ts'
import { LOOK_MAX_MS, LOOK_MS } from './lane-watch.ts'

export interface LookoutOptions {
  /** Every thread that runs, or is about to. */
  berths: () => Berth[]
  /** The loop of a thread stands still. Called at each look while it does. */
  onStill: (berth: Berth) => void
  /** The loop of a thread turns. */
  onTurning: (berth: Berth) => void
  /** A fault of the primary's own while it looked at a lane. */
  onFault: (lane: Lane, error: unknown) => void
}

/** Looks at all lanes again and again, and ends those that do not go on or take too much. */
export class Lookout {
  readonly #options: LookoutOptions
  #timer: NodeJS.Timeout | undefined
  #lookedMs = Date.now()

  constructor(options: LookoutOptions) {
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
    for (const berth of this.#options.berths()) {
      try {
        this.#lookAt(berth, nowMs, sinceLookMs)
      } catch (error) {
        this.#options.onFault(berth.lane, error)
      }
    }
  }

  #lookAt(berth: Berth, nowMs: number, sinceLookMs: number): void {
    const { lane, watch } = berth
    if (lane.state === 'dead' || berth.verdict !== 'fine') return
    lane.expire(nowMs)
    // Its code runs no more, but the thread may wait for native work to end.
    if (lane.flight.hasLastWords) berth.abort.abort()
    if (lane.state === 'starting') {
      berth.bootStillMs += Math.min(sinceLookMs, LOOK_MAX_MS)
      berth.bootFault ??= watch.bootFault()
      if (berth.bootFault !== null || berth.bootStillMs > BOOT_TIMEOUT_MS) void this.#condemn(berth, 'boot')
      return
    }
    const verdict = watch.look(nowMs, sinceLookMs)
    lane.responsive = watch.isTurning
    if (!watch.isTurning) this.#options.onStill(berth)
    else this.#options.onTurning(berth)
    if (verdict !== 'fine') void this.#condemn(berth, verdict)
  }

  /** Asks where it stands, then ends it. */
  async #condemn(berth: Berth, verdict: Berth['verdict']): Promise<void> {
    berth.verdict = verdict
    berth.cpuMsWhileStill = berth.watch.cpuMsWhileStill
    berth.stack = await berth.watch.stack()
    berth.cpuMs = berth.lane.pulse.cpuMs
    berth.abort.abort()
  }
}
