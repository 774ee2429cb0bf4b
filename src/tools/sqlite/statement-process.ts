import type { ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Answer, failed, type Order } from './process-messages.ts'

const ENTRY = fileURLToPath(new URL('./statement-child.ts', import.meta.url))
/** Rows of one answer that do not fit end the process, not the machine. */
const HEAP_MB = 256
/** Options of this process that are for itself alone. */
const OWN_OPTION = /^--(?:inspect|debug|cpu-prof|heap-prof|prof|max-old-space-size|watch|test)/

/** One process that runs heavy statements. It has at most one at a time. */
export class StatementProcess {
  readonly #child: ChildProcess
  readonly #onEnd: () => void
  #answer: ((answer: Answer) => void) | null = null
  /** Why it was killed. */
  #reason: Answer | null = null
  /** The thread that it works for; null while it is idle. */
  threadId: number | null = null
  writes = false
  hasEnded = false

  /** @param onEnd called once, however it ends */
  constructor(path: string, synchronous: string, onEnd: () => void) {
    const execArgv = process.execArgv.filter((option) => !OWN_OPTION.test(option))
    // Loaded on demand: few applications have a heavy statement.
    const { fork } = process.getBuiltinModule('node:child_process')
    this.#child = fork(ENTRY, [path, synchronous], {
      execArgv: [...execArgv, `--max-old-space-size=${HEAP_MB}`],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    this.#onEnd = onEnd
    this.#child.on('message', (answer: Answer) => this.#settle(answer))
    this.#child.on('error', (error) => this.#ended(error.message))
    this.#child.on('exit', (code, signal) => this.#ended(`it ended with ${signal ?? code}`))
  }

  /** False once it is about to end. */
  get isUsable(): boolean {
    return this.#reason === null && !this.hasEnded
  }

  /** Resolves when it takes orders; with an error when it does not come up. */
  get started(): Promise<Answer> {
    return this.#next()
  }

  /** @param limitMs it is killed when it takes longer */
  async perform(order: Order, limitMs: number): Promise<Answer> {
    if (!this.isUsable) return this.#reason ?? failed('unavailable', 'The process of this transaction has ended')
    const answer = this.#next()
    const timer = setTimeout(() => this.kill(timeoutOf(limitMs)), limitMs)
    this.#child.send(order, (error) => {
      if (error !== null) this.kill(failed('unavailable', error.message))
    })
    try {
      return await answer
    } finally {
      clearTimeout(timer)
    }
  }

  kill(reason: Answer): void {
    this.#reason ??= reason
    this.#child.kill('SIGKILL')
  }

  #next(): Promise<Answer> {
    this.#child.ref()
    this.#child.channel?.ref()
    return new Promise((resolve) => {
      this.#answer = resolve
    })
  }

  #settle(answer: Answer): void {
    const settle = this.#answer
    this.#answer = null
    // While nobody waits for it, it must not keep this process from ending.
    this.#child.unref()
    this.#child.channel?.unref()
    settle?.(answer)
  }

  #ended(why: string): void {
    if (this.hasEnded) return
    this.hasEnded = true
    this.#reason ??= failed(
      'unavailable',
      `The process of the statement is gone: ${why}. A result of more than ${HEAP_MB} MiB ends it, too`,
    )
    this.#settle(this.#reason)
    this.#onEnd()
  }
}

function timeoutOf(limitMs: number): Answer {
  return failed('timeout', `The statement was ended after ${limitMs} ms (RDB_STATEMENT_TIMEOUT_MS)`)
}
