import { basename, dirname } from 'node:path'
import type { Lane } from '../dispatch/lane.ts'
import { bootingAt } from './black-box.ts'
import type { BarredPlugins } from './circuit-breaker.ts'
import type { LaneSlot, LaneThread } from './lane-set.ts'
import type { LaneReplacement } from './replacement.ts'

export interface SlowBootOptions {
  slots: readonly LaneSlot[]
  barred: BarredPlugins
  replacement: LaneReplacement
  /** Starts a thread for a slot. @param isTrial with the plugins that the others do not wait for */
  spawn: (slot: LaneSlot, isTrial: boolean) => LaneThread
  /** True while some lane takes work. */
  isServed: () => boolean
  isStopping: () => boolean
  /** A plugin that lanes run without has turned out not to boot. */
  onLeftOut: (file: string, reason: string) => void
  /** The threads in the slots have changed. */
  onChange: () => void
  onFault: (lane: Lane, error: unknown) => void
}

/**
 * Lets nobody wait for a plugin that takes long to boot. Where no lane serves, the lanes start without it, and one thread goes on with it beside
 * them. When that has booted it takes over, and so do further ones with the plugin; when it has not in its time, the plugin stays out.
 */
export class SlowBoot {
  readonly #options: SlowBootOptions
  #trial: LaneThread | null = null
  /** Settles when the lanes have the plugin that they had not waited for. */
  #takingOver: Promise<void> = Promise.resolve()
  readonly #waiters: (() => void)[] = []
  /** Threads that are being asked where they stand. */
  readonly #asked = new Set<LaneThread>()

  constructor(options: SlowBootOptions) {
    this.#options = options
  }

  /** Called at each check while a thread boots. */
  look(thread: LaneThread): void {
    const { slots, isServed, isStopping } = this.#options
    const { lane, watchdog, bootingFile } = thread
    if (!watchdog.isBootSlow || isServed() || isStopping() || !slots.some((slot) => slot.thread === thread)) return
    if (watchdog.isResponsive) this.#goOnWithout(bootingFile, lane)
    else if (!this.#asked.has(thread)) void this.#ask(thread)
  }

  /** What stands still may be another plugin's, which has booted: a timer of its `onBoot`. */
  async #ask(thread: LaneThread): Promise<void> {
    this.#asked.add(thread)
    const stack = await thread.watchdog.bootStack()
    this.#asked.delete(thread)
    const { isServed, isStopping } = this.#options
    if (thread.lane.state === 'starting' && !isServed() && !isStopping())
      this.#goOnWithout(bootingAt(thread, stack ?? []), thread.lane)
  }

  /** @param file null when it is not known what takes so long */
  #goOnWithout(file: string | null, lane: Lane): void {
    const { slots, barred, onChange } = this.#options
    // A domain.ts or app.ts has the guards of others: without it they could not be served.
    if (file === null || basename(dirname(file)) !== 'plugins') return
    const slow = slots.filter(({ thread }) => thread.lane.state === 'starting' && !thread.without.has(file))
    if (!slow.some(({ thread }) => thread.lane === lane)) return
    barred.waitFor(file)
    for (const slot of slow) this.#startWithout(slot, slot.thread.lane === lane)
    onChange()
  }

  #startWithout(slot: LaneSlot, isSlow: boolean): void {
    const { replacement, spawn } = this.#options
    const { thread } = slot
    replacement.outsideSlots.add(thread)
    if (isSlow && this.#trial === null) this.#try(slot, thread)
    else replacement.discard(thread)
    slot.thread = spawn(slot, false)
  }

  #try(slot: LaneSlot, thread: LaneThread): void {
    this.#trial = thread
    thread.onBootEnd = (fault) => {
      thread.onBootEnd = null
      // It was given up: there is new code.
      if (this.#trial !== thread || this.#options.isStopping()) return
      this.#trial = null
      this.#takingOver = (fault === null ? this.#takeOver(slot, thread) : this.#leftOut(slot, thread)).catch((error) =>
        this.#options.onFault(thread.lane, error),
      )
      void this.#takingOver.then(() => {
        if (!this.isUnderWay) for (const wake of this.#waiters.splice(0)) wake()
      })
    }
  }

  /** All that was waited for has booted. */
  async #takeOver(slot: LaneSlot, thread: LaneThread): Promise<void> {
    const { slots, barred, replacement, isStopping } = this.#options
    const files = barred.admit()
    await replacement.takeOver(slot, thread)
    for (const other of slots) {
      if (isStopping() || !files.some((file) => other.thread.without.has(file))) continue
      const { fresh, fault } = await replacement.start(other)
      // It has brought this one down: now it is barred, as after any death.
      if (fault !== null) return replacement.discard(fresh)
      await replacement.takeOver(other, fresh)
    }
  }

  /** What has ended the thread is barred by now. Of several that were waited for, the others are tried without it. */
  async #leftOut(slot: LaneSlot, { without }: LaneThread): Promise<void> {
    const { barred, replacement, spawn, onLeftOut } = this.#options
    for (const [file, reason] of Object.entries(barred.reasons)) if (!without.has(file)) onLeftOut(file, reason)
    if (barred.waiting.size === 0) return
    const next = spawn(slot, true)
    replacement.outsideSlots.add(next)
    this.#try(slot, next)
  }

  get isUnderWay(): boolean {
    return this.#trial !== null
  }

  /** Resolves when each plugin has booted, or is left out. */
  async over(): Promise<void> {
    if (this.isUnderWay) await new Promise<void>((resolve) => this.#waiters.push(resolve))
    await this.#takingOver
  }

  /** There is new code. Resolves when the lanes may be replaced. */
  async giveUp(): Promise<void> {
    const trial = this.#trial
    this.#trial = null
    if (trial !== null) this.#options.replacement.discard(trial)
    this.#options.barred.giveUpWaiting('It was still booting when new code was loaded')
    await this.#takingOver
  }
}
