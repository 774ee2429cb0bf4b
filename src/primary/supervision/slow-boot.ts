// Plugins that boot so slowly that lanes start without them.
import { basename, dirname } from 'node:path'
import { until } from '../../core/schedule/waiting.ts'
import { bootingAt } from './black-box.ts'
import type { LaneSet, LaneSlot, LaneThread } from './lane-set.ts'
import type { LaneReplacement } from './replacement.ts'

/**
 * Lets nobody wait for a plugin that takes long to boot. Where no lane serves, the lanes start without it, and one thread goes on with it beside
 * them. When that has booted it takes over, and so do further ones with the plugin; when it has not in its time, the plugin stays out.
 */
export class SlowBoot {
  readonly #replacement: LaneReplacement
  readonly #lanes: LaneSet
  #trial: LaneThread | null = null
  /** Settles when the lanes have the plugin that they had not waited for. */
  #takingOver: Promise<void> = Promise.resolve()
  /** Threads that are being asked where they stand. */
  readonly #asked = new Set<LaneThread>()

  constructor(replacement: LaneReplacement) {
    this.#replacement = replacement
    this.#lanes = replacement.lanes
  }

  /** Called at each check while a thread boots. */
  look(thread: LaneThread): void {
    const { watchdog, bootingFile } = thread
    const isInSlot = this.#lanes.slots.some((slot) => slot.thread === thread)
    if (!watchdog.isBootSlow || !isInSlot || !this.#isWaitedFor) return
    if (watchdog.isResponsive) this.#goOnWithout(bootingFile, thread)
    else if (!this.#asked.has(thread)) void this.#ask(thread)
  }

  /** No lane takes work yet. */
  get #isWaitedFor(): boolean {
    return this.#lanes.ready.length === 0 && !this.#lanes.isStopping
  }

  /** What stands still may be another plugin's, which has booted: a timer of its `onBoot`. */
  async #ask(thread: LaneThread): Promise<void> {
    this.#asked.add(thread)
    const stack = await thread.watchdog.bootStack()
    this.#asked.delete(thread)
    if (thread.state === 'starting' && this.#isWaitedFor) this.#goOnWithout(bootingAt(thread, stack ?? []), thread)
  }

  /** @param file null when it is not known what takes so long */
  #goOnWithout(file: string | null, lane: LaneThread): void {
    const { slots } = this.#lanes
    // A domain.ts or app.ts has the guards of others: without it they could not be served.
    if (file === null || basename(dirname(file)) !== 'plugins') return
    const slow = slots.filter(({ thread }) => thread.state === 'starting' && !thread.without.has(file))
    if (!slow.some(({ thread }) => thread === lane)) return
    this.#replacement.starter.barred.waiting.add(file)
    for (const slot of slow) this.#startWithout(slot, slot.thread === lane)
    this.#lanes.changed()
  }

  #startWithout(slot: LaneSlot, isSlow: boolean): void {
    const { thread, index, role } = slot
    this.#lanes.outside.add(thread)
    if (isSlow && this.#trial === null) this.#try(slot, thread)
    else this.#replacement.discard(thread)
    slot.thread = this.#replacement.starter.start(index, role)
  }

  #try(slot: LaneSlot, thread: LaneThread): void {
    this.#trial = thread
    void thread.booted.then((fault) => {
      // It was given up: there is new code.
      if (this.#trial !== thread || this.#lanes.isStopping) return
      this.#trial = null
      this.#takingOver = (fault === null ? this.#takeOver(slot, thread) : this.#leftOut(slot, thread)).catch((error) =>
        this.#replacement.registrar.onFault(thread, error),
      )
    })
  }

  /** All that was waited for has booted. */
  async #takeOver(slot: LaneSlot, thread: LaneThread): Promise<void> {
    const replacement = this.#replacement
    const files = replacement.starter.barred.admit()
    await replacement.takeOver(slot, thread)
    for (const other of this.#lanes.slots) {
      if (this.#lanes.isStopping || !files.some((file) => other.thread.without.has(file))) continue
      // It has brought this one down: now it is barred, as after any death.
      const { fault, drained } = await replacement.replace([other])
      if (fault !== null) return
      await drained
    }
  }

  /** What has ended the thread is barred by now. Of several that were waited for, the others are tried without it. */
  async #leftOut(slot: LaneSlot, { without }: LaneThread): Promise<void> {
    const { barred } = this.#replacement.starter
    for (const [file, reason] of Object.entries(barred.reasons))
      if (!without.has(file)) this.#replacement.registrar.leftOut(file, reason)
    if (barred.waiting.size === 0) return
    const next = this.#replacement.starter.start(slot.index, slot.role, true)
    this.#lanes.outside.add(next)
    this.#try(slot, next)
  }

  /** Resolves when each plugin has booted, or is left out. */
  async over(): Promise<void> {
    await until(() => this.#trial === null, Number.POSITIVE_INFINITY)
    await this.#takingOver
  }

  /** There is new code. Resolves when the lanes may be replaced. */
  async giveUp(): Promise<void> {
    const trial = this.#trial
    this.#trial = null
    if (trial !== null) this.#replacement.discard(trial)
    this.#replacement.starter.barred.giveUpWaiting('It was still booting when new code was loaded')
    await this.#takingOver
  }
}
