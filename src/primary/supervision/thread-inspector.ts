// The one inspector session by which this thread reaches those that it has started.
import type { NodeWorker, Session } from 'node:inspector'
import { withTimeout } from '../../core/schedule/waiting.ts'

/** Who has a channel to a thread is waited for this long, milliseconds: longer than a question takes that the thread answers. */
const USER_MAX_MS = 2000

/** Told what a thread says, and when it has ended. */
export interface ThreadListener {
  /** It is not parsed: scripts announce themselves with their source maps. */
  message(text: string): void
  gone(): void
}

/** The way to one thread. Nobody else has one to it until it is closed. */
export interface ThreadChannel {
  /** Does nothing when the thread is gone. @returns the id that the answer has */
  send(method: string): number
  close(): void
}

/** A thread that runs. */
interface Target {
  readonly session: string
  /** Who is at work on it; null: nobody. */
  user: { readonly listener: ThreadListener; readonly closed: Promise<void> } | null
}

/**
 * Knows all threads that this one has started since, and stays. It must not be made anew for each question: while Node tells a session of the
 * threads that are there (`WorkerManager::SetAutoAttach`), the list loses a thread that ends in that moment, and the process ends by SIGSEGV
 * (seen with Node 22.23). A session that is there before all threads is told of each as it starts.
 */
class ThreadInspector {
  readonly #session: Session
  readonly #targets = new Map<number, Target>()
  #sent = 0

  /** @throws where Node was built without inspector, or forbids sessions */
  constructor() {
    // An `import()` would ask the loader's thread first.
    const { Session } = process.getBuiltinModule('node:inspector')
    this.#session = new Session()
    this.#session.connect()
    this.#session.on('NodeWorker.attachedToWorker', ({ params }) => {
      this.#targets.set(threadIdOf(params), { session: params.sessionId, user: null })
    })
    this.#session.on('NodeWorker.receivedMessageFromWorker', ({ params: { sessionId, message } }) => {
      for (const { session, user } of this.#targets.values()) if (session === sessionId) user?.listener.message(message)
    })
    this.#session.on('NodeWorker.detachedFromWorker', ({ params: { sessionId } }) => {
      for (const [threadId, { session, user }] of this.#targets) {
        if (session !== sessionId) continue
        this.#targets.delete(threadId)
        user?.listener.gone()
      }
    })
    this.#session.post('NodeWorker.enable', { waitForDebuggerOnStart: false })
  }

  async open(threadId: number, listener: ThreadListener): Promise<ThreadChannel | null> {
    const user = this.#targets.get(threadId)?.user ?? null
    if (user !== null) await withTimeout(user.closed, USER_MAX_MS, undefined)
    const target = this.#targets.get(threadId)
    if (target === undefined || target.user !== null) return null
    let close = (): void => {}
    const closed = new Promise<void>((resolve) => {
      close = () => {
        target.user = null
        resolve()
      }
    })
    target.user = { listener, closed }
    return { send: (method) => this.#send(threadId, target, method), close }
  }

  #send(threadId: number, target: Target, method: string): number {
    const id = ++this.#sent
    if (this.#targets.get(threadId) !== target) return id
    const message = JSON.stringify({ id, method })
    this.#session.post('NodeWorker.sendMessageToWorker', { sessionId: target.session, message }, () => {})
    return id
  }
}

let inspector: ThreadInspector | null = null

/** Called before the first thread is started. Where Node has no inspector, nothing can be seen of threads or stopped in them. */
export function inspectThreads(): void {
  try {
    inspector ??= new ThreadInspector()
  } catch {}
}

/** @returns null when there is no such thread, or no inspector, or somebody else has a channel to the thread and keeps it */
export async function openThread(threadId: number, listener: ThreadListener): Promise<ThreadChannel | null> {
  inspectThreads()
  return (await inspector?.open(threadId, listener)) ?? null
}

/** The title is "[worker 3] name". The workerId is not the thread's id, it counts attachments. */
function threadIdOf({ workerInfo }: NodeWorker.AttachedToWorkerEventDataType): number {
  return Number(/^\[worker (\d+)\]/.exec(workerInfo.title)?.[1])
}
