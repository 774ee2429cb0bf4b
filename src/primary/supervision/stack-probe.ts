// Where a thread stands, and how what it runs is stopped.
import type { Debugger, NodeWorker, Session } from 'node:inspector'
import type { SourceMap } from 'node:module'
import { setImmediate } from 'node:timers/promises'
import {
  ANONYMOUS,
  framesOfStack,
  pathOf,
  placeInSource,
  type SourcePlace,
  STACK_MAX_FRAMES,
  type StackFrame,
  sourceMap,
} from '../../core/errors/places.ts'
import { withTimeout } from '../../core/schedule/waiting.ts'
import { isInspected } from './debugger.ts'

/** Nothing of it is of a plugin or of the runtime: a loop that is seen between two of its turns. */
export const isOfNode = (stack: readonly StackFrame[]): boolean => stack.every(({ file }) => file.startsWith('node:'))

interface Script {
  /** Empty for text that was evaluated. */
  url: string
  map: SourceMap | null
  /** Its map lies in a file that somebody has removed. */
  isMapLost: boolean
}

/** A thread that runs. */
interface Target {
  readonly session: string
  /** Joined by whoever asks meanwhile: a thread in a long native call stops when that is over. */
  probe: Probe | null
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
      this.#targets.set(threadIdOf(params), { session: params.sessionId, probe: null })
    })
    this.#session.on('NodeWorker.receivedMessageFromWorker', ({ params: { sessionId, message } }) => {
      for (const { session, probe } of this.#targets.values()) if (session === sessionId) probe?.onMessage(message)
    })
    this.#session.on('NodeWorker.detachedFromWorker', ({ params: { sessionId } }) => {
      for (const [threadId, { session, probe }] of this.#targets) {
        if (session !== sessionId) continue
        this.#targets.delete(threadId)
        probe?.onPaused(null)
      }
    })
    this.#session.post('NodeWorker.enable', { waitForDebuggerOnStart: false })
  }

  /** Asks a thread, unless it is being asked. @returns null when there is no such thread */
  probe(threadId: number): Probe | null {
    const target = this.#targets.get(threadId)
    if (target === undefined) return null
    target.probe ??= new Probe(
      (method) => this.#send(threadId, target, method),
      () => {
        target.probe = null
      },
    )
    return target.probe
  }

  /** Does nothing when the thread is gone. */
  #send(threadId: number, target: Target, method: string): void {
    if (this.#targets.get(threadId) !== target) return
    const message = JSON.stringify({ id: ++this.#sent, method })
    this.#session.post('NodeWorker.sendMessageToWorker', { sessionId: target.session, message }, () => {})
  }
}

/** The title is "[worker 3] name". The workerId is not the thread's id, it counts attachments. */
function threadIdOf({ workerInfo }: NodeWorker.AttachedToWorkerEventDataType): number {
  return Number(/^\[worker (\d+)\]/.exec(workerInfo.title)?.[1])
}

let inspector: ThreadInspector | null = null

/** Called before the first thread is started. Where Node has no inspector, nothing can be seen of threads or stopped in them. */
export function inspectThreads(): void {
  try {
    inspector ??= new ThreadInspector()
  } catch {}
}

/**
 * The stack of a thread that this one has started, innermost frame first, at most STACK_MAX_FRAMES. Null when the thread did not stop
 * within `timeoutMs`: it is inside a native call, has nothing to do, or is gone. A healthy thread stops at the next thing that it does.
 * Only that thread stops, for about a millisecond, and then runs on. Do not ask a thread that is about to end, as one whose heap is nearly full
 * (see `Probe`). Never throws.
 * @param onStop as for `stopThread`
 */
export async function stackOf(
  threadId: number,
  timeoutMs = 1000,
  onStop: (() => void) | null = null,
): Promise<StackFrame[] | null> {
  inspectThreads()
  const probe = inspector?.probe(threadId) ?? null
  if (probe === null) return null
  if (onStop !== null) probe.onStop = onStop
  return withTimeout(probe.stack, timeoutMs, null)
}

/**
 * Stops what a thread runs just now, of which neither `catch` nor `finally` sees anything: its loop goes on, and what waited in it comes. A thread
 * that is inside a native call is stopped when that is over. Needs the flags of `LanePool`.
 * @param onStop called while it stands, before it goes on
 * @returns the stack of what was stopped, as `stackOf`; null when nothing was stopped in time
 */
export const stopThread = (
  threadId: number,
  timeoutMs = 1000,
  onStop: () => void = () => {},
): Promise<StackFrame[] | null> => stackOf(threadId, timeoutMs, onStop)

/**
 * Takes the stack of one thread.
 *
 * A message that reaches a thread in the very moment in which it ends can abort the whole process: its mailbox is being taken apart, and
 * `node::inspector::MainThreadInterface::Post` asks it for a pointer to itself (seen with Node 20.20 on a busy machine). So a probe sends as few
 * messages as it can, and only to a thread that lives on: when it has stood still for a while, and when it has stopped, for then it cannot end.
 * With its debugger off it goes on, unless another debugger holds it: then it is resumed.
 * In between the probe waits as long as it takes, until the thread stops or is gone. A stop that was asked for is not taken back.
 */
class Probe {
  /** Resolves when the thread has stopped, and runs on; with null when it is gone. */
  readonly stack: Promise<StackFrame[] | null>
  /** Called while the thread stands; then what it runs is stopped. Null: it is only asked. */
  onStop: (() => void) | null = null
  /** Raw `Debugger.scriptParsed` messages by script. Some hold a source map; only a few are ever read. */
  readonly #announcements = new Map<string, string>()
  readonly #scripts = new Map<string, Script>()
  /** Told where the thread stands, or null when it is gone. */
  onPaused: (callFrames: Debugger.CallFrame[] | null) => void = () => {}

  /** @param over called when the thread runs on */
  constructor(send: (method: string) => void, over: () => void) {
    // A plugin may have replaced `Error.prepareStackTrace`, which places are asked from.
    this.stack = this.#take(send, over).catch(() => null)
  }

  async #take(send: (method: string) => void, over: () => void): Promise<StackFrame[] | null> {
    const paused = new Promise<Debugger.CallFrame[] | null>((resolve) => {
      this.onPaused = resolve
    })
    send('Debugger.enable')
    send('Debugger.pause')
    const callFrames = await paused
    // This may still run inside a callback of the session.
    await setImmediate()
    over()
    if (this.onStop !== null && this.#canStop(callFrames)) send('Runtime.terminateExecution')
    // Another debugger has seen the stop, too, and would hold the thread, which could not be ended.
    if (isInspected()) send('Debugger.resume')
    send('Debugger.disable')
    return callFrames?.slice(0, STACK_MAX_FRAMES).map((frame) => this.#sourceFrame(frame)) ?? null
  }

  /** Not where Node alone is at work: stopped in the midst of its lists it would look for ever for a timer that is gone. Whoever stops a loop asks again, and finds it elsewhere. */
  #canStop(callFrames: Debugger.CallFrame[] | null): boolean {
    return callFrames?.some(({ location }) => !this.#script(location.scriptId).url.startsWith('node:')) === true
  }

  /** Takes what the thread says. It is not parsed: scripts announce themselves with their source maps. */
  onMessage(text: string): void {
    if (text.startsWith('{"method":"Debugger.scriptParsed"')) {
      const scriptId = /"scriptId":"(\d+)"/.exec(text.slice(0, 100))?.[1]
      if (scriptId !== undefined) this.#announcements.set(scriptId, text)
      return
    }
    const message = JSON.parse(text)
    if (message.method !== 'Debugger.paused') return
    this.onStop?.()
    this.onPaused(message.params.callFrames)
  }

  #sourceFrame({ functionName, location }: Debugger.CallFrame): StackFrame {
    const { url, map, isMapLost } = this.#script(location.scriptId)
    const { lineNumber, columnNumber = 0 } = location
    if (isMapLost) {
      const place = placeByLoader(pathOf(url), lineNumber + 1, columnNumber + 1)
      return { ...place, function: functionName || ANONYMOUS }
    }
    return { function: functionName || ANONYMOUS, ...placeInSource(url, map, lineNumber, columnNumber) }
  }

  /** Read once, however many frames of a recursion are in it. */
  #script(scriptId: string): Script {
    let script = this.#scripts.get(scriptId)
    if (script === undefined) {
      const text = this.#announcements.get(scriptId)
      const { url, sourceMapURL }: Debugger.ScriptParsedEventDataType =
        text === undefined ? { url: '' } : JSON.parse(text).params
      const map = sourceMap(sourceMapURL)
      script = { url, map, isMapLost: map === null && sourceMapURL?.startsWith('file:') === true }
      this.#scripts.set(scriptId, script)
    }
    return script
  }
}

/**
 * A place in the source as the stack of an error would have it: the loader makes the map anew, from the source as it is now. Where it cannot, the
 * place in the script is better than none.
 */
function placeByLoader(file: string, line: number, column: number): SourcePlace {
  const site = { getFileName: () => file, toString: () => `f (${file}:${line}:${column})` }
  const stack: unknown = Error.prepareStackTrace?.(new Error(''), [site as unknown as NodeJS.CallSite])
  const [named] = typeof stack === 'string' ? framesOfStack(stack) : []
  return named ?? { file, line, column }
}
