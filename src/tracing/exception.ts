// What was thrown, as a span may show it.
import { CATALOGUE, HeddleError } from '../core/errors/catalogue.ts'
import { DbError } from '../core/errors/db-error.ts'
import { codeOf, messageOf } from '../core/errors/description.ts'
import { frameLines } from '../core/errors/places.ts'
import { withoutSecretStrings } from '../core/schemas/secret-fields.ts'
import { ATTR } from './attributes.ts'

/** Longer messages and stacks are cut. Characters. */
const MESSAGE_MAX_LENGTH = 1024
const STACK_MAX_LENGTH = 4096

/** How a span shows something that was thrown. */
interface ShownException {
  /** `error.type`: the code of the error if it has one; the kind of a database error. */
  type: string
  message: string
  /** The attributes of the span's event `exception`. */
  attributes: Record<string, string>
  /** Further attributes of the span. */
  more: Record<string, string>
}

/**
 * Errors of plugins are shown with their message. Errors of the runtime and of its tools may quote values that they were given, so only
 * their code and its text from the catalogue are shown. Never throws, although getters of a thrown object may.
 */
export function exceptionOf(thrown: unknown): ShownException {
  try {
    return shown(thrown)
  } catch {
    const message = 'Something was thrown that cannot be read'
    return { type: 'unreadable', message, attributes: { 'exception.message': message }, more: {} }
  }
}

function shown(thrown: unknown): ShownException {
  if (!(thrown instanceof Error)) {
    const message = withoutSecretStrings(messageOf(thrown)).slice(0, MESSAGE_MAX_LENGTH)
    return { type: typeof thrown, message, attributes: { 'exception.message': message }, more: {} }
  }
  const code = codeOf(thrown)
  const name = String(thrown.name)
  const message = safeMessageOf(thrown).slice(0, MESSAGE_MAX_LENGTH)
  const more: Record<string, string> = {}
  // What the database answered with, for example a SQLSTATE.
  const response = thrown instanceof DbError ? codeOf(thrown.cause) : undefined
  if (response !== undefined) more[ATTR.DB_RESPONSE_STATUS] = response
  return {
    type: thrown instanceof DbError ? thrown.kind : (code ?? name),
    message,
    attributes: {
      'exception.type': code ?? name,
      'exception.message': message,
      'exception.stacktrace': `${name}: ${message}\n${frameLines(thrown.stack).join('\n')}`.slice(0, STACK_MAX_LENGTH),
    },
    more,
  }
}

function safeMessageOf(thrown: Error): string {
  if (thrown instanceof DbError) return `Database error: ${thrown.kind}`
  if (thrown instanceof HeddleError) return CATALOGUE[thrown.code][1]
  return withoutSecretStrings(messageOf(thrown))
}
