import { CATALOGUE, HeddleError } from '../../core/errors/catalogue.ts'
import { DbError } from '../../core/errors/db-error.ts'
import { messageOf } from '../../core/errors/wire.ts'
import { ATTR } from '../encoding/attributes.ts'

/** Longer messages and stacks are cut, characters. */
const MESSAGE_MAX_LENGTH = 1024
const STACK_MAX_LENGTH = 4096

/** A thrown thing as a span shows it. */
export interface ShownException {
  /** `error.type`: the code where there is one, for a database fault its kind. */
  type: string
  message: string
  /** The attributes of the span's event `exception`. */
  attributes: Record<string, string>
  /** Further attributes of the span. */
  more: Record<string, string>
}

/**
 * What a plugin throws is shown with its message. Errors of the runtime and of its tools may quote what they were given: they are shown with
 * their code and what the catalogue says of it. Never throws: a thrown thing may have getters that do.
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
    const message = messageOf(thrown).slice(0, MESSAGE_MAX_LENGTH)
    return { type: typeof thrown, message, attributes: { 'exception.message': message }, more: {} }
  }
  const { code } = thrown as { code?: unknown }
  const name = String(thrown.name)
  const message = safeMessageOf(thrown).slice(0, MESSAGE_MAX_LENGTH)
  const more: Record<string, string> = {}
  const response = thrown instanceof DbError ? codeOf(thrown.cause) : undefined
  if (response !== undefined) more[ATTR.DB_RESPONSE_STATUS] = response
  return {
    type: thrown instanceof DbError ? thrown.kind : typeof code === 'string' ? code : name,
    message,
    attributes: {
      'exception.type': typeof code === 'string' ? code : name,
      'exception.message': message,
      'exception.stacktrace': `${name}: ${message}\n${framesOf(thrown)}`.slice(0, STACK_MAX_LENGTH),
    },
    more,
  }
}

function safeMessageOf(thrown: Error): string {
  if (thrown instanceof DbError) return `Database error: ${thrown.kind}`
  if (thrown instanceof HeddleError) return CATALOGUE[thrown.code][1]
  return messageOf(thrown)
}

/** The code that a database answered with; a SQLSTATE for example. */
function codeOf(cause: unknown): string | undefined {
  const code = (cause as { code?: unknown } | null | undefined)?.code
  return typeof code === 'string' ? code : undefined
}

/** A stack begins with the message, which may have any number of lines. */
function framesOf({ stack }: Error): string {
  if (typeof stack !== 'string') return ''
  return stack
    .split('\n')
    .filter((line) => /^ {4}at /.test(line))
    .join('\n')
}
