// Says whose turn it is while plugins boot: of one that is booted, or of what another has begun before.
import { createHook } from 'node:async_hooks'
import { causality } from '../core/causality/context.ts'
import type { HeartbeatWriter } from '../transport/memory/heartbeat.ts'

/**
 * Notes in the lane's memory the plugin whose code has its turn, or had the last one: where a thread stands still in a native call, or has no core to
 * stop with, that alone tells who it is. A turn is a part of a boot, or a callback of what a boot has begun: a timer, a promise, a socket.
 * It costs each promise time, and ends with the boot.
 */
export class BootTurns {
  readonly #heartbeat: HeartbeatWriter
  readonly #numbers = new Map<string, number>()
  /** Of turns that others have interrupted. */
  readonly #outer: number[] = []
  #current = 0
  readonly #hook = createHook({
    before: () => this.#begin(causality.getStore()?.origin?.bootFile),
    after: () => this.#end(),
  })

  constructor(heartbeat: HeartbeatWriter) {
    this.#heartbeat = heartbeat
    this.#hook.enable()
  }

  /** A further plugin boots: the primary counts them in the same order. */
  next(file: string): void {
    this.#numbers.set(file, this.#numbers.size + 1)
    if (!this.#heartbeat.isAsked) return
    this.#heartbeat.answered()
    this.#outer.length = 0
    this.#hook.enable()
  }

  /** Runs what a stage of a plugin's boot does at once. */
  run<T>(file: string, stage: () => T): T {
    this.#begin(file)
    try {
      return stage()
    } finally {
      this.#end()
    }
  }

  over(): void {
    this.#hook.disable()
    this.#note(0)
  }

  #begin(file: string | undefined): void {
    if (this.#heartbeat.isAsked) this.#hook.disable()
    this.#outer.push(this.#current)
    this.#note(file === undefined ? 0 : (this.#numbers.get(file) ?? 0))
  }

  /** Between two turns of a loop the last one counts. */
  #end(): void {
    const outer = this.#outer.pop() ?? 0
    if (this.#outer.length > 0) this.#note(outer)
  }

  #note(number: number): void {
    if (number === this.#current) return
    this.#current = number
    this.#heartbeat.turnOf(number)
  }
}
