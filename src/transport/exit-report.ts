// Why a thread ends, told by itself.
import type { Origin } from '../contracts/tracing.ts'
import { causality } from '../core/causality/context.ts'
import { messageOf, stackOf } from '../core/errors/description.ts'
import { isStuck } from '../core/schedule/stopped-immediate.ts'
import type { FlightRecorder } from './memory/flight-recorder.ts'

// Characters: with their escapes they fit into the exit report of the flight recorder.
const MESSAGE_MAX = 500
const STACK_MAX = 3000

/** The reason of its end that a thread has left. */
export interface ExitReport {
  /** `broken`: a plugin has replaced a builtin. */
  kind: 'exit' | 'throw' | 'broken'
  message: string
  /** Text of an error's stack, innermost frame first. */
  stack: string
  /** The handler in which the timer, the socket or the promise was made whose callback has ended the thread; null when unknown. */
  origin: Origin | null
}

// Taken before plugins can replace them: what throws while Node reports an error ends the process.
const { stringify } = JSON
const { captureStackTrace } = Error

/**
 * Lets this thread leave the reason of its end in its flight recorder: the stack of an uncaught error, or of the call of `process.exit`.
 * The pool's error does not help: it has no stack for the one, and loses that of the other.
 * A plugin that signals its own process is refused: it must not end the process.
 * @param leave called instead of the end: the thread goes on until what is under way in it has ended, but for what is stopped. False: it ends at once
 * @param skipStopped lets Node go on behind what was stopped; false when it cannot: the thread ends at once, since nothing more would run in it
 * @returns leaves another reason
 */
export function installExitReport(
  flight: FlightRecorder,
  leave: (isStopped?: boolean) => boolean,
  skipStopped: () => boolean,
): (report: Omit<ExitReport, 'origin'>) => void {
  const say = ({ kind, message, stack }: Omit<ExitReport, 'origin'>): void => {
    // Node tells of an uncaught error while the resource is still entered that it came from.
    const origin = causality.getStore()?.origin ?? null
    const cut = { kind, message: message.slice(0, MESSAGE_MAX), stack: stack.slice(0, STACK_MAX), origin }
    flight.writeExitReport(stringify(cut))
  }
  process.on('uncaughtExceptionMonitor', (error: unknown) => {
    if (isStuck(error)) return
    try {
      say({ kind: 'throw', message: messageOf(error), stack: framesIn(stackOf(error) ?? '') })
    } catch {
      // A plugin has replaced what this needs, and Node aborts the process for what is thrown here.
      flight.writeExitReport('an error that cannot be described')
    }
  })
  const exit = process.exit.bind(process)
  process.on('uncaughtException', (error) => {
    if (isStuck(error) ? !skipStopped() : !leave()) exit(1)
  })
  process.exit = (code?: number | string | null): never => {
    const asked = new Error('process.exit')
    captureStackTrace(asked, process.exit)
    say({ kind: 'exit', message: `process.exit(${code ?? ''}) was called`, stack: asked.stack ?? '' })
    return leave(true) ? stopHere() : exit(code)
  }
  const kill = process.kill.bind(process)
  process.kill = (pid: number, signal?: string | number): true => {
    const isOwn = pid === process.pid || pid === 0 || pid === -process.pid
    if (isOwn && signal !== 0) throw new Error('A plugin cannot signal the process that it runs in')
    return kill(pid, signal)
  }
  return say
}

/** Stops what this thread runs just now, and no more: its loop goes on. No `catch` and no `finally` of whoever called sees it. */
function stopHere(): never {
  const { Session } = process.getBuiltinModule('node:inspector')
  const session = new Session()
  session.connect()
  session.post('Runtime.terminateExecution')
  for (;;);
}

/** The text of a stack without the message at its start, which may be of any length. */
function framesIn(stack: string): string {
  const from = stack.search(/^ {4}at /m)
  return from < 0 ? '' : stack.slice(from)
}

/** @returns null when the thread has left no report */
export function parseExitReport(text: string): ExitReport | null {
  if (text === '') return null
  try {
    return JSON.parse(text) as ExitReport
  } catch {
    // The report was cut off at its limit.
    return { kind: 'throw', message: text.slice(0, 500), stack: '', origin: null }
  }
}
