// Whether a debugger holds a thread.
import { withTimeout } from '../../core/schedule/waiting.ts'
import { ESTABLISHED, socketsAt } from '../http/listening.ts'
import { openThread } from './thread-inspector.ts'

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
   */
  look(threadId: number, nowMs: number): void {
    if (this.#asked !== null || nowMs - this.#askedMs < ASK_PAUSE_MS) return
    this.#askedMs = nowMs
    void this.ask(threadId)
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
 * With `Debugger.enable` a thread that is paused says `Debugger.paused` before it answers; one that runs only answers, and runs on.
 * `Debugger.disable` does not let a thread go that another debugger holds. While this one stayed enabled, the thread would stay held when that
 * debugger goes away.
 *
 * A debugger that is gone leaves its breakpoints in the threads, and whom they hold would never go on: it is let go.
 */
async function pauseOf(threadId: number): Promise<Pause> {
  let tell: (pause: Pause) => void = () => {}
  const told = new Promise<Pause>((resolve) => {
    tell = resolve
  })
  let pause: Pause = 'none'
  let sent: string = 'Debugger.enable'
  let id = 0
  const channel = await openThread(threadId, {
    message: (text) => {
      if (text.startsWith('{"method":"Debugger.paused"')) pause = 'held'
      if (!text.startsWith(`{"id":${id},`)) return
      if (sent === 'Debugger.disable') return tell(pause)
      sent = 'Debugger.disable'
      if (pause === 'held' && !isAttached()) {
        pause = 'forsaken'
        sent = 'Debugger.resume'
      }
      id = channel!.send(sent)
    },
    gone: () => tell('none'),
  })
  if (channel === null) return 'none'
  id = channel.send(sent)
  try {
    return await withTimeout(told, ANSWER_MAX_MS, 'none')
  } finally {
    // It has not answered: it reads this, too, when it goes on.
    if (sent !== 'Debugger.disable') channel.send('Debugger.disable')
    channel.close()
  }
}

/** True while a debugger is connected to this process. The inspector does not say; Linux does, and where not even the inspector's own socket shows, one counts as connected. */
function isAttached(): boolean {
  const sockets = socketsAt(Number(new URL(process.getBuiltinModule('node:inspector').url()!).port))
  return sockets.length === 0 || sockets.some(({ state }) => state === ESTABLISHED)
}
