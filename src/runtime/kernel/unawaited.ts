import { causality } from '../../core/causality/context.ts'
import { messageOf, stackOf } from '../../core/errors/description.ts'
import { linesOf, placeText, type SourcePlace } from '../../core/errors/places.ts'
import { type FailedCall, failedCalls } from './proxy.ts'
import type { ThreadOptions } from './thread.ts'

const FIX = 'await the call, or handle its rejection with .catch'

/**
 * Logs the tool calls that reject while nobody waits for them, with the plugin and the line, and lets the thread live: its state is sound, but
 * what the plugin wanted to be done was not. Any other rejection that nobody handles ends the thread, as it does in Node itself.
 * @param fileOf the file of a plugin
 */
export function watchUnawaited(
  writeLog: ThreadOptions['writeLog'],
  fileOf: (plugin: string) => string | undefined,
): void {
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
