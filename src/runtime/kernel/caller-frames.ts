import { describe } from '../../core/errors/description.ts'
import { frameOf, isOfPlugin, type SourcePlace } from '../../core/errors/places.ts'

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
  const own = framesOf(stack)
  const waiting = framesOf(new Error().stack)
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

function framesOf(stack: string | undefined): string[] {
  return stack?.split('\n').filter((line) => /^ {4}at /.test(line)) ?? []
}
