import type { CallPart, PayloadPart } from '../../contracts/requests.ts'
import type { DescribeCall } from '../../contracts/tracing.ts'
import { messageOf } from '../../core/errors/description.ts'
import { withoutSecrets } from '../../core/schemas/secret-fields.ts'
import type { KnownSecrets } from '../../core/schemas/secret-texts.ts'
import type { WorkPayloads } from './payloads.ts'

/** Characters of a text. */
const TEXT_MAX = 2000

/** A call that was begun. Its arguments are looked at only if the work is kept. */
export interface Call {
  parent: number
  tool: string
  method: string
  describe: DescribeCall | undefined
  args: readonly unknown[]
  fromMs: number
  ms: number
  error: unknown
  result: unknown
}

/** Of a call that has not ended. */
export const OPEN = -1
/** Of a call that has thrown nothing: a plugin may throw `undefined`. */
export const NOTHING = Symbol('nothing')

/** What is kept of a call. @param payloads null where they are not kept @param secrets of its work */
export function callPartOf(
  { parent, tool, method, describe, args, fromMs, ms, error, result }: Call,
  payloads: WorkPayloads | null,
  secrets: KnownSecrets,
): CallPart {
  const entry: CallPart = { parent, tool, method, fromMs, ms: ms === OPEN ? null : ms }
  if (error !== NOTHING) entry.error = secrets.hideIn(messageOf(error)).slice(0, TEXT_MAX)
  const [first, second] = args
  if (tool === 'logger') {
    if (typeof first === 'string') entry.message = secrets.hideIn(first).slice(0, TEXT_MAX)
    if (typeof second === 'object' && second !== null) entry.fields = fieldsOf(second, secrets)
  } else if (tool === 'event_bus' || method === 'publish') {
    if (typeof first === 'string') entry.event = first
    if (method === 'publish' && typeof result === 'string') entry.eventId = result
    if (method === 'publish' && entry.event !== undefined) put(entry, 'payload', payloads?.event(entry.event, second))
  } else {
    const statement = describe?.(method, args)?.attributes?.['db.query.text']
    if (typeof statement === 'string') {
      entry.statement = statement.slice(0, TEXT_MAX)
      put(entry, 'values', payloads?.values(statement, args))
    }
  }
  return entry
}

function put<Name extends 'payload' | 'values'>(entry: CallPart, name: Name, part: PayloadPart | undefined): void {
  if (part !== undefined) entry[name] = part
}

/** Passwords, hashes and tokens that a call of `auth` got or gave. */
export function addSecretsOf({ tool, args, result }: Call, secrets: KnownSecrets): void {
  if (tool !== 'auth') return
  for (const value of [...args, result]) if (typeof value === 'string') secrets.add(value)
}

/** What JSON cannot hold, or what is too long, is left out. */
function fieldsOf(fields: object, secrets: KnownSecrets): Record<string, unknown> {
  try {
    const json = JSON.stringify(fields)
    if (json.length <= TEXT_MAX) return withoutSecrets(JSON.parse(json), null, secrets) as Record<string, unknown>
  } catch {
    // A plugin may log anything.
  }
  return {}
}
