// Calls of tools that have failed: the line of the plugin, and those that nobody waits for.
import type { ToolHost } from '../../contracts/tool.ts'
import { causality } from '../../core/causality/context.ts'
import { describe, messageOf, stackOf } from '../../core/errors/description.ts'
import { frameLines, frameOf, isOfPlugin, linesOf, placeText, type SourcePlace } from '../../core/errors/places.ts'

/** What is told of a failed call beside its error. */
export interface CallerNote {
  /** The innermost line of plugin code that waits for the call, or has made it; undefined when no stack has it. */
  place: SourcePlace | undefined
  /** The statement with `?` for its literals; undefined for a call without one. */
  statement: string | undefined
}

/** Errors whose stack shows the caller already: a failed statement fails its transaction with the same error. */
const told = new WeakMap<object, CallerNote>()

/**
 * Puts the plugin's own frames first in the stack of an error, and the statement before them. A driver's error comes from a queue or a socket, so
 * its own stack ends in the runtime; but while the rejection goes on to who awaits the call, V8 knows the functions that wait.
 * To be called in the reaction that passes the rejection on.
 * @param statement without values
 */
export function showCaller(thrown: unknown, statement: () => string | undefined): CallerNote {
  if (typeof thrown !== 'object' || thrown === null) return { place: undefined, statement: undefined }
  const before = told.get(thrown)
  if (before !== undefined) return before
  const { stack } = describe(thrown)
  const own = frameLines(stack)
  const waiting = frameLines(new Error().stack)
  const ofPlugin = [...own, ...waiting].filter((line) => isOfPlugin(frameOf(line)?.file))
  const note: CallerNote = {
    place: ofPlugin[0] === undefined ? undefined : frameOf(ofPlugin[0]),
    statement: statement(),
  }
  told.set(thrown, note)
  if (stack === undefined) return note
  const head = own.length === 0 ? stack : stack.slice(0, stack.indexOf(own[0]!)).trimEnd()
  const lines = [
    head,
    ...(note.statement === undefined ? [] : [`  statement: ${note.statement}`]),
    ...new Set([...ofPlugin, ...own]),
  ]
  try {
    ;(thrown as { stack?: string }).stack = lines.join('\n')
  } catch {
    // It is frozen: the log shows the stack that it has.
  }
  return note
}

/** A call whose promise has rejected. */
export interface FailedCall {
  tool: string
  method: string
  args: readonly unknown[]
  note: CallerNote
}

/** By the promise that the caller has got. */
export const failedCalls = new WeakMap<Promise<unknown>, FailedCall>()

const FIX = 'await the call, or handle its rejection with .catch'

/**
 * Logs the tool calls that reject while nobody waits for them, with the plugin and the line, and lets the thread live: its state is sound, but
 * what the plugin wanted to be done was not. Any other rejection that nobody handles ends the thread, as it does in Node itself.
 * @param fileOf the file of a plugin
 */
export function watchUnawaited(writeLog: ToolHost['writeLog'], fileOf: (plugin: string) => string | undefined): void {
  process.on('unhandledRejection', (reason, promise) => {
    const call = failedCalls.get(promise)
    if (call === undefined) {
      // In the context of the promise: the report of the death names the handler that has made it.
      process.nextTick(rethrow, reason)
      return
    }
    const cause = causality.getStore()
    const plugin = cause?.origin?.plugin
    const file = plugin === undefined ? undefined : fileOf(plugin)
    const place = call.note.place ?? (file === undefined ? undefined : callIn(file, call))
    const where = place === undefined ? (cause?.origin?.handler ?? 'an unknown place') : placeText(place)
    const name = `${call.tool}.${call.method}`
    writeLog(
      'ERROR',
      `${name} failed, and nobody waits for it, at ${where}: ${messageOf(reason)}. Fix: ${FIX}`,
      plugin ?? call.tool,
      {
        // The line of the request shows it, too.
        unawaited: `${name} at ${where}`,
        plugin,
        handler: cause?.origin?.handler,
        line: place === undefined ? undefined : placeText(place),
        request_id: cause?.requestId,
        event_id: cause?.eventId,
        stack: stackOf(reason),
      },
    )
  })
}

function rethrow(reason: unknown): never {
  throw reason
}

/**
 * Where a plugin calls a method without waiting for it, by its source: nothing is recorded of the calls themselves, since that would cost each
 * of them more than the measurement. Undefined when there is no such line. Of several the one with the call's first argument in it.
 */
function callIn(file: string, { method, args }: FailedCall): SourcePlace | undefined {
  const lines = linesOf(file)
  const call = new RegExp(`\\.${method}\\s*[(<]`)
  const places = lines.flatMap((text, index): SourcePlace[] => {
    const at = text.search(call)
    if (at < 0) return []
    const before = `${lines[index - 1]?.trimEnd().match(/(?:await|return|=>|=)$/)?.[0] ?? ''} ${text.slice(0, at)}`
    return /\b(?:await|return|yield)\b/.test(before) ? [] : [{ file, line: index + 1, column: at + 2 }]
  })
  if (places.length < 2) return places[0]
  const [first] = args
  const literal = typeof first === 'string' ? first.trim().split('\n')[0]!.slice(0, 60) : ''
  const near = ({ line }: SourcePlace): boolean =>
    lines
      .slice(line - 1, line + 3)
      .join('\n')
      .includes(literal)
  return (literal === '' ? undefined : places.find(near)) ?? places[0]
}
