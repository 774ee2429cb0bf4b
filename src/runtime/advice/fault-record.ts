// The log record of a fault.
import { causeOf, headOf, isInstance, messageOf, readable, stackOf, textOf } from '../../core/errors/description.ts'
import { placeInPlugin, placeOfText, placeText, type SourcePlace } from '../../core/errors/places.ts'
import { emptyAnswers } from '../endpoint/json-answer.ts'
import { type FixFacts, fixOf } from './fixes.ts'

/**
 * The log record of an error that a handler has thrown: with its line and its fix, as far as they are known.
 * @param path of its route, or another name of what has failed
 */
export function faultRecord(
  path: string,
  plugin: string,
  requestId: string,
  thrown: unknown,
  facts: FixFacts,
): { message: string; fields: Record<string, unknown> } {
  const message = messageOf(thrown)
  const fields: Record<string, unknown> = { request_id: requestId, stack: stackOf(thrown) }
  // Getters of a plugin's object may throw.
  const { place, shown } = readable(() => placesOf(thrown, facts.fileOf(plugin), path)) ?? {}
  // Nothing of it has a line: its file is better than nothing.
  const line = shown === undefined ? facts.fileOf(plugin) : placeText(shown)
  if (line !== undefined) fields.line = line
  const cause = causeOf(thrown)
  // A driver's error has the same message as that of the tool, and a stack that ends in the runtime.
  if (cause !== undefined && headOf(messageOf(cause)) !== headOf(message)) fields.cause = stackOf(cause)
  const fix = readable(() => fixOf(thrown, { ...facts, place }))
  if (fix !== undefined) fields.fix = fix
  return { message: `${path} failed: ${message}`, fields }
}

/** The line that its stack has, and the one that is shown. */
function placesOf(thrown: unknown, file: string | undefined, path: string) {
  const place = placeInPlugin(thrown)
  return { place, shown: place ?? (file === undefined ? undefined : textPlace(file, thrown, path)) }
}

/** Warns of handlers that return nothing, once per route. @param log gets the message and the plugin */
export function watchEmptyAnswers(facts: FixFacts, log: (message: string, plugin: string) => void): void {
  const told = new Set<string>()
  emptyAnswers.tell = ({ plugin, method, route }) => {
    const name = `${method} ${route}`
    if (told.has(name)) return
    told.add(name)
    const file = facts.fileOf(plugin)
    const place = file === undefined ? undefined : textPlace(file, undefined, route)
    const where = place === undefined ? '' : ` at ${placeText(place)}`
    log(`${name} is answered with null, for its handler${where} returns nothing. Fix: ${RETURN}`, plugin)
  }
}

const RETURN = 'return an object, as in `return { success: true }`; context.setStatus(204) answers without a body.'

/** What has no stack of the plugin: the line that throws a text, or the line that registers the route. */
function textPlace(file: string, thrown: unknown, path: string): SourcePlace | undefined {
  return placeOfThrow(file, thrown) ?? placeOfOne(file, quoted(path))
}

/** The line that throws a text, null or another value as the source writes it. */
export function placeOfThrow(file: string, thrown: unknown): SourcePlace | undefined {
  if (isInstance(thrown, Error)) return undefined
  const text = textOf(thrown)
  return placeOfOne(
    file,
    [text, ...quoted(text)].map((each) => `throw ${each}`),
  )
}

const quoted = (text: string): string[] => [`'${text}'`, `"${text}"`, `\`${text}\``]

function placeOfOne(file: string, texts: readonly string[]): SourcePlace | undefined {
  for (const text of texts) {
    const place = placeOfText(file, text)
    if (place !== undefined) return place
  }
  return undefined
}
