// Whether a debugger holds a thread.
import type { NodeWorker, Session } from 'node:inspector'
import { withTimeout } from '../../core/schedule/waiting.ts'
import { ESTABLISHED, socketsAt } from '../http/listening.ts'

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
      const pause = await pauseOf(threadId)
      if (pause === 'forsaken') this.#onForsaken()
      return pause === 'held'
    } catch {
      // A Node that forbids sessions: the thread counts as running, as it does without a debugger.
      return false
    }
  }
}

type Pause = 'none' | 'held' | 'forsaken'

/**
 * Looks at a thread in a session of its own. With `Debugger.enable` a thread that is paused says `Debugger.paused` before it answers; one that
 * runs only answers, and runs on. The session ends after the answer to `Debugger.disable`, which does not let a thread go that another
 * debugger holds. While this session stayed, the thread would stay held when that debugger goes away.
 *
 * A debugger that is gone leaves its breakpoints in the threads, and whom they hold would never go on: it is let go.
 */
async function pauseOf(threadId: number): Promise<Pause> {
  let tell: (pause: Pause) => void = () => {}
  const told = new Promise<Pause>((resolve) => {
    tell = resolve
  })
  let pause: Pause = 'none'
  let sent = 'Debugger.enable'
  const session = new ThreadSession((message) => {
    if (message.startsWith('{"method":"Debugger.paused"')) pause = 'held'
    if (!message.startsWith('{"id":')) return
    if (sent === 'Debugger.disable') return tell(pause)
    sent = 'Debugger.disable'
    if (pause === 'held' && !isAttached()) {
      pause = 'forsaken'
      sent = 'Debugger.resume'
    }
    session.send(sent)
  })
  try {
    return (await session.attach(threadId, [sent])) ? await withTimeout(told, ANSWER_MAX_MS, 'none') : 'none'
  } finally {
    // Not inside a callback of the session.
    setImmediate(() => session.close())
  }
}

/** True while a debugger is connected to this process. The inspector does not say; Linux does, and where not even the inspector's own socket shows, one counts as connected. */
function isAttached(): boolean {
  const sockets = socketsAt(Number(new URL(process.getBuiltinModule('node:inspector').url()!).port))
  return sockets.length === 0 || sockets.some(({ state }) => state === ESTABLISHED)
}

/** An inspector session of this thread, by which it reaches one that it has started. Loaded on demand: as long as no thread stands still, nothing is. */
export class ThreadSession {
  readonly #session: Session
  /** The thread's own session within this one; empty while there is none. */
  #target = ''
  #sent = 0

  /**
   * @param onMessage told what the thread says. It is not parsed: scripts announce themselves with their source maps
   * @param onGone the thread has ended
   */
  constructor(onMessage: (text: string) => void, onGone: () => void = () => {}) {
    // An `import()` would ask the loader's thread first.
    const { Session } = process.getBuiltinModule('node:inspector')
    const session = new Session()
    session.connect()
    session.on('NodeWorker.receivedMessageFromWorker', ({ params: { sessionId, message } }) => {
      if (sessionId === this.#target) onMessage(message)
    })
    session.on('NodeWorker.detachedFromWorker', ({ params: { sessionId } }) => {
      if (sessionId !== this.#target) return
      this.#target = ''
      onGone()
    })
    this.#session = session
  }

  /** @param methods sent at once @returns false when there is no such thread */
  attach(threadId: number, methods: readonly string[]): Promise<boolean> {
    this.#session.on('NodeWorker.attachedToWorker', ({ params }) => {
      if (threadIdOf(params) !== threadId) return
      this.#target = params.sessionId
      for (const method of methods) this.send(method)
    })
    return new Promise((resolve, reject) => {
      // All existing threads have been announced when this returns.
      this.#session.post('NodeWorker.enable', { waitForDebuggerOnStart: false }, (error) => {
        if (error) reject(error)
        else resolve(this.#target !== '')
      })
    })
  }

  /** Does nothing when the thread is gone. */
  send(method: string): void {
    if (this.#target === '') return
    const message = JSON.stringify({ id: ++this.#sent, method })
    this.#session.post('NodeWorker.sendMessageToWorker', { sessionId: this.#target, message }, () => {})
  }

  close(): void {
    this.#session.disconnect()
  }
}

/** The title is "[worker 3] name". The workerId is not the thread's id, it counts attachments. */
function threadIdOf({ workerInfo }: NodeWorker.AttachedToWorkerEventDataType): number {
  return Number(/^\[worker (\d+)\]/.exec(workerInfo.title)?.[1])
}
