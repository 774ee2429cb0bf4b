import type { NodeWorker, Session } from 'node:inspector'

/** While a thread stands still it is asked this often, milliseconds. */
const ASK_PAUSE_MS = 500
/** A thread that a debugger holds answers at once. One that is inside a native call does not, and is not held. */
const ANSWER_MAX_MS = 1000

/** True while the inspector of this process listens: `--inspect`, SIGUSR1, or an editor that has opened it. */
export function isInspected(): boolean {
  // Not imported: a service that nobody watches and whose threads turn does not load it.
  return process.getBuiltinModule('node:inspector').url() !== undefined
}

/** Knows whether a debugger holds one thread: at a breakpoint, at an exception, or between two steps. */
export class DebuggerHold {
  /** By the last answer. */
  isHeld = false
  #asked: Promise<boolean> | null = null
  #askedMs = 0

  /**
   * Asks the thread, unless it was asked a moment ago. Called while it stands still; costs nothing while the inspector does not listen.
   * @param nowMs by `steadyMs`
   * @param isQuiet false while some thread may be about to end: then none is asked
   */
  look(threadId: number, nowMs: number, isQuiet: () => boolean): void {
    if (this.#asked !== null || nowMs - this.#askedMs < ASK_PAUSE_MS) return
    this.#askedMs = nowMs
    if (isQuiet()) void this.ask(threadId)
  }

  /** Whether the thread is held just now. False for one that does not answer. Never throws. */
  async ask(threadId: number): Promise<boolean> {
    this.#asked ??= this.#ask(threadId)
    const isHeld = await this.#asked
    this.#asked = null
    this.isHeld = isHeld
    return isHeld
  }

  /** The thread runs. */
  over(): void {
    this.isHeld = false
    this.#askedMs = 0
  }

  async #ask(threadId: number): Promise<boolean> {
    // 0: it has not begun.
    if (threadId === 0 || !isInspected()) return false
    try {
      const { Session } = process.getBuiltinModule('node:inspector')
      return await isPaused(new Session(), threadId)
    } catch {
      // A Node that forbids sessions: the thread counts as running, as it does without a debugger.
      return false
    }
  }
}

/**
 * Looks at a thread in a session of its own. With `Debugger.enable` a thread that is paused says `Debugger.paused` before it answers; one that
 * runs only answers, and runs on. The session ends after the answer to `Debugger.disable`, which does not let a thread go that another
 * debugger holds. While this session stayed, the thread would stay held when that debugger goes away.
 */
async function isPaused(session: Session, threadId: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  session.connect()
  try {
    return await new Promise<boolean>((resolve, reject) => {
      let target = ''
      let isHeld = false
      timer = setTimeout(() => resolve(false), ANSWER_MAX_MS)
      const send = (id: number, method: string): void =>
        session.post(
          'NodeWorker.sendMessageToWorker',
          { sessionId: target, message: JSON.stringify({ id, method }) },
          () => {},
        )
      session.on('NodeWorker.attachedToWorker', ({ params }) => {
        if (threadIdOf(params) !== threadId) return
        target = params.sessionId
        send(1, 'Debugger.enable')
      })
      session.on('NodeWorker.receivedMessageFromWorker', ({ params: { sessionId, message } }) => {
        if (sessionId !== target) return
        // Not parsed: scripts announce themselves with their source maps.
        if (message.startsWith('{"method":"Debugger.paused"')) isHeld = true
        else if (message.startsWith('{"id":1,')) send(2, 'Debugger.disable')
        else if (message.startsWith('{"id":2,')) resolve(isHeld)
      })
      // All existing threads have been announced when this returns.
      session.post('NodeWorker.enable', { waitForDebuggerOnStart: false }, (error) => {
        if (error) reject(error)
        else if (target === '') resolve(false)
      })
    })
  } finally {
    clearTimeout(timer)
    // Not inside a callback of the session.
    setImmediate(() => session.disconnect())
  }
}

/** The title is "[worker 3] name". The workerId is not the thread's id, it counts attachments. */
export function threadIdOf({ workerInfo }: NodeWorker.AttachedToWorkerEventDataType): number {
  return Number(/^\[worker (\d+)\]/.exec(workerInfo.title)?.[1])
}
