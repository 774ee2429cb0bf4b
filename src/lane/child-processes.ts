// The processes that plugins start in a lane: told to the primary, and ended when the lane leaves.
import childProcess, { ChildProcess } from 'node:child_process'
import { syncBuiltinESMExports } from 'node:module'
import { causality } from '../core/causality/context.ts'
import { steadyMs } from '../core/schedule/clock.ts'
import { until } from '../core/schedule/waiting.ts'
import { findTree, processTable, signal, startOf } from '../guardian/process-tree.cjs'
import type { ToPrimary } from '../transport/messages.ts'

/** When its lane leaves, a process has this long between SIGTERM and SIGKILL, milliseconds. */
const CHILDREN_END_MS = 2000
/** After SIGKILL Node hears of its end within this time: a process of which nobody hears stays in the system's table until the runtime ends. */
const HEARD_MS = 500
/** All of that takes no longer than this, milliseconds. */
export const ENDING_MAX_MS = CHILDREN_END_MS + HEARD_MS + 1000
/** To look takes a walk through the processes of the machine. */
const LOOK_MS = 50
const AWAITED = ['spawnSync', 'execSync', 'execFileSync'] as const

interface Spawning {
  spawn(options: { envPairs?: string[] }): unknown
}

/** What the plugins of this thread have started. Each process leads a group and a session of its own, in which is what it starts itself. */
export class ChildProcesses {
  /** Something may be left when it ends: a process, or what a plugin's own thread has started. */
  isUsed = false
  readonly #mark: string
  readonly #living = new Set<ChildProcess>()
  /** Each with its `startOf`. */
  readonly #leaders = new Map<number, number>()
  /** Leaders that have ended, and left others in their groups. */
  readonly #ended = new Set<number>()

  /** @param mark value of `HEDDLE_RUN` in what is started here: whoever ends what is left knows it by that */
  constructor(mark: string) {
    this.#mark = mark
  }

  /** Tells the primary of each from now on: when the lane is gone, nobody else would end it. */
  watch(post: (message: ToPrimary) => void): void {
    // There are no groups.
    if (process.platform === 'win32') return
    process.env.HEDDLE_RUN = this.#mark
    const { prototype } = ChildProcess as unknown as { prototype: Spawning }
    const { spawn } = prototype
    const pair = `HEDDLE_RUN=${this.#mark}`
    const started = (child: ChildProcess): void => this.#started(child, post)
    prototype.spawn = function (this: ChildProcess, options) {
      // One that gets an environment of its own would be without.
      const envPairs = [...(options.envPairs ?? []), pair]
      const outcome = spawn.call(
        this as unknown as Spawning,
        { ...options, envPairs, detached: true } as typeof options,
      )
      started(this)
      return outcome
    }
    this.#watchAwaited(post)
  }

  #started(child: ChildProcess, post: (message: ToPrimary) => void): void {
    const { pid, spawnfile: command } = child
    if (pid === undefined) return
    const { plugin = null, handler = null } = causality.getStore()?.origin ?? {}
    const start = startOf(pid)
    this.isUsed = true
    this.#living.add(child)
    this.#leaders.set(pid, start)
    post({ type: 'process-started', pid, start, command, starter: { plugin, handler } })
    child.once('exit', () => {
      this.#living.delete(child)
      this.#ended.add(pid)
      const isGroup = (leader: number): boolean => signal(-leader, 0)
      const table = [...this.#ended].some(isGroup) ? processTable() : null
      for (const leader of this.#ended) {
        const leaders = new Map([[leader, this.#leaders.get(leader)!]])
        if (isGroup(leader) && findTree({ leaders, mark: null }, table).length > 0) continue
        this.#ended.delete(leader)
        this.#leaders.delete(leader)
        post({ type: 'process-ended', pid: leader })
      }
    })
  }

  /** What a plugin waits for it ends by itself, but that may have left something. */
  #watchAwaited(post: (message: ToPrimary) => void): void {
    const builtin = childProcess as unknown as Record<string, (...args: unknown[]) => unknown>
    const marked = (arg: unknown): unknown => {
      const { env } = (arg ?? {}) as { env?: object }
      return env == null ? arg : { ...(arg as object), env: { ...env, HEDDLE_RUN: this.#mark } }
    }
    for (const name of AWAITED) {
      const plain = builtin[name]!
      builtin[name] = (...args) => {
        if (!this.isUsed) post({ type: 'process-awaited' })
        this.isUsed = true
        return plain(...args.map(marked))
      }
    }
    syncBuiltinESMExports()
  }

  /** Ends all that is left. While the loop of their thread turns Node hears of their end, and so do plugins, which remove their files then. */
  async end(): Promise<void> {
    const left = (): number[] => findTree({ leaders: this.#leaders, mark: this.#mark })
    for (const pid of left()) {
      // Of what a parent has started that ends by this, nothing else may tell.
      if (pid > 0) this.#leaders.set(pid, startOf(pid))
      signal(pid, 'SIGTERM')
    }
    await until(() => left().length === 0, steadyMs() + CHILDREN_END_MS, { checkMs: LOOK_MS })
    for (const pid of left()) signal(pid, 'SIGKILL')
    await until(() => this.#living.size === 0, steadyMs() + HEARD_MS)
  }
}
