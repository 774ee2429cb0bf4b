// Where a thread stands, and how what it runs is stopped.
import type { Debugger } from 'node:inspector'
import type { SourceMap } from 'node:module'
import { isAbsolute, relative } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { ANONYMOUS, pathOf, placeInSource, sourceMap } from '../../core/errors/places.ts'
import { withTimeout } from '../../core/schedule/waiting.ts'
import { isInspected } from './debugger.ts'
import { openThread, type ThreadChannel } from './thread-inspector.ts'

/** Where a function stood: line and column count from 1, in the source as it was written. */
export interface StackFrame {
  function: string
  /** An absolute path; `node:…` for what is inside Node; `<anonymous>` for text that was evaluated. */
  file: string
  line: number
  column: number
}

/** Nothing of it is of a plugin or of the runtime: a loop that is seen between two of its turns. */
export const isOfNode = (stack: readonly StackFrame[]): boolean => stack.every(({ file }) => file.startsWith('node:'))

/** Frames of a stack that are kept, from the innermost on. */
export const STACK_MAX_FRAMES = 32

interface Script {
  /** Empty for text that was evaluated. */
  url: string
  map: SourceMap | null
  /** Its map lies in a file that somebody has removed. */
  isMapLost: boolean
}

/** Probes that have not ended, by thread: a thread in a long native call stops when that is over. */
const probes = new Map<number, Probe>()

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
  try {
    const probe = probeOf(threadId)
    if (onStop !== null) probe.onStop = onStop
    return await withTimeout(probe.stack, timeoutMs, null)
  } catch {
    // A Node without inspector, or one that forbids it: the report has no stack.
    return null
  }
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

function probeOf(threadId: number): Probe {
  const running = probes.get(threadId)
  if (running !== undefined && !running.isOver) return running
  const probe = new Probe(threadId)
  probes.set(threadId, probe)
  const over = (): void => {
    if (probes.get(threadId) === probe) probes.delete(threadId)
  }
  probe.stack.then(over, over)
  return probe
}

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
  /** The thread runs on. */
  isOver = false
  /** Raw `Debugger.scriptParsed` messages by script. Some hold a source map; only a few are ever read. */
  readonly #announcements = new Map<string, string>()
  readonly #scripts = new Map<string, Script>()
  #onPaused: (callFrames: Debugger.CallFrame[] | null) => void = () => {}
  readonly #paused = new Promise<Debugger.CallFrame[] | null>((resolve) => {
    this.#onPaused = resolve
  })

  constructor(threadId: number) {
    this.stack = this.#take(threadId)
  }

  async #take(threadId: number): Promise<StackFrame[] | null> {
    const channel = await openThread(threadId, {
      message: (text) => this.#onMessage(text),
      gone: () => this.#onPaused(null),
    })
    let callFrames: Debugger.CallFrame[] | null = null
    try {
      channel?.send('Debugger.enable')
      channel?.send('Debugger.pause')
      if (channel !== null) callFrames = await this.#paused
      // This may still run inside a callback of the session.
      await setImmediate()
    } finally {
      this.isOver = true
      if (channel !== null) this.#letGo(channel, callFrames)
    }
    return callFrames?.slice(0, STACK_MAX_FRAMES).map((frame) => this.#sourceFrame(frame)) ?? null
  }

  #letGo(channel: ThreadChannel, callFrames: Debugger.CallFrame[] | null): void {
    if (this.onStop !== null && this.#canStop(callFrames)) channel.send('Runtime.terminateExecution')
    // Another debugger has seen the stop, too, and would hold the thread, which could not be ended.
    if (isInspected()) channel.send('Debugger.resume')
    channel.send('Debugger.disable')
    channel.close()
  }

  /** Not where Node alone is at work: stopped in the midst of its lists it would look for ever for a timer that is gone. Whoever stops a loop asks again, and finds it elsewhere. */
  #canStop(callFrames: Debugger.CallFrame[] | null): boolean {
    return callFrames?.some(({ location }) => !this.#script(location.scriptId).url.startsWith('node:')) === true
  }

  #onMessage(text: string): void {
    if (text.startsWith('{"method":"Debugger.scriptParsed"')) {
      const scriptId = /"scriptId":"(\d+)"/.exec(text.slice(0, 100))?.[1]
      if (scriptId !== undefined) this.#announcements.set(scriptId, text)
      return
    }
    const message = JSON.parse(text)
    if (message.method !== 'Debugger.paused') return
    this.onStop?.()
    this.#onPaused(message.params.callFrames)
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
function placeByLoader(file: string, line: number, column: number): Omit<StackFrame, 'function'> {
  const site = { getFileName: () => file, toString: () => `f (${file}:${line}:${column})` }
  const stack: unknown = Error.prepareStackTrace?.(new Error(''), [site as unknown as NodeJS.CallSite])
  const [named] = typeof stack === 'string' ? framesOfStack(stack) : []
  return named ?? { file, line, column }
}

/** `at name (place:1:2)`, and `at place:1:2` for a function without a name. */
const NAMED = /^\s*at (.+?) \((.+):(\d+):(\d+)\)$/
const NAMELESS = /^\s*at (.+):(\d+):(\d+)$/
/** A frame's line has at most this many characters. The message of an error is searched as well, and may be long. */
const FRAME_MAX_CHARS = 1000

/**
 * The frames in the text of an error's `stack`, at most STACK_MAX_FRAMES. Async functions that wait for the failed one count as frames.
 * Frames without a place (native functions, `Promise.all`) are left out.
 */
export function framesOfStack(stack: string): StackFrame[] {
  const frames: StackFrame[] = []
  for (const text of stack.split('\n')) {
    if (text.length > FRAME_MAX_CHARS) continue
    const named = NAMED.exec(text)
    const [place, line, column] = (named ?? NAMELESS.exec(text))?.slice(named ? 2 : 1) ?? []
    if (place === undefined) continue
    frames.push({
      function: named?.[1]?.replace(/^async /, '') ?? ANONYMOUS,
      // Evaluated text: `eval at name (place), <anonymous>`.
      file: pathOf(place.startsWith('eval at ') ? ANONYMOUS : place.replace(/^async /, '')),
      line: Number(line),
      column: Number(column),
    })
    if (frames.length === STACK_MAX_FRAMES) break
  }
  return frames
}

/** `name (domains/x/plugins/y.ts:12:5)`: the path is relative to the current directory when it is inside it. */
export function shownFrame({ function: name, file, line, column }: StackFrame): string {
  const short = isAbsolute(file) ? relative(process.cwd(), file) : file
  const path = short.startsWith('..') || isAbsolute(short) ? file : short
  return `${name} (${path}:${line}:${column})`
}
