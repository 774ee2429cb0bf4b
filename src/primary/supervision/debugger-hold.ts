// Whether a debugger holds a thread.
import { readFileSync } from 'node:fs'
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
  readonly #onForsaken: () => void
  #asked: Promise<boolean> | null = null
  #askedMs = 0

  /** @param onForsaken told when the thread has stood at a breakpoint of a debugger that is gone, and goes on */
  constructor(onForsaken: () => void) {
    this.#onForsaken = onForsaken
  }

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
      const pause = await pauseOf(new Session(), threadId)
      if (pause === 'forsaken') this.#onForsaken()
      return pause === 'held'
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
 *
 * A debugger that is gone leaves its breakpoints in the threads, and whom they hold would never go on: it is let go.
 */
async function pauseOf(session: Session, threadId: number): Promise<'none' | 'held' | 'forsaken'> {
  let timer: NodeJS.Timeout | undefined
  session.connect()
  try {
    return await new Promise((resolve, reject) => {
      let target = ''
      let pause: 'none' | 'held' | 'forsaken' = 'none'
      timer = setTimeout(() => resolve('none'), ANSWER_MAX_MS)
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
        if (message.startsWith('{"method":"Debugger.paused"')) pause = 'held'
        else if (message.startsWith('{"id":1,')) {
          if (pause === 'none' || isAttached()) return send(3, 'Debugger.disable')
          pause = 'forsaken'
          send(2, 'Debugger.resume')
        } else if (message.startsWith('{"id":2,')) send(3, 'Debugger.disable')
        else if (message.startsWith('{"id":3,')) resolve(pause)
      })
      // All existing threads have been announced when this returns.
      session.post('NodeWorker.enable', { waitForDebuggerOnStart: false }, (error) => {
        if (error) reject(error)
        else if (target === '') resolve('none')
      })
    })
  } finally {
    clearTimeout(timer)
    // Not inside a callback of the session.
    setImmediate(() => session.disconnect())
  }
}

/**
 * True while a debugger is connected to this process. The inspector does not say; Linux does, and elsewhere one counts as connected.
 * Source: proc(5), `/proc/net/tcp`: the local address as `IP:port` in hexadecimal, and the state, of which 01 is established.
 */
function isAttached(): boolean {
  const { port } = new URL(process.getBuiltinModule('node:inspector').url()!)
  const local = Number(port).toString(16).toUpperCase().padStart(4, '0')
  const connected = new RegExp(`^ *\\d+: [0-9A-F]+:${local} [0-9A-F]+:[0-9A-F]+ 01 `, 'm')
  let isKnown = false
  for (const table of ['tcp', 'tcp6']) {
    try {
      if (connected.test(readFileSync(`/proc/net/${table}`, 'latin1'))) return true
      isKnown = true
    } catch {
      // It is not Linux, or one of the two families is not there.
    }
  }
  return !isKnown
}

/** The title is "[worker 3] name". The workerId is not the thread's id, it counts attachments. */
export function threadIdOf({ workerInfo }: NodeWorker.AttachedToWorkerEventDataType): number {
  return Number(/^\[worker (\d+)\]/.exec(workerInfo.title)?.[1])
}
