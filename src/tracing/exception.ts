import type { Exception } from '@opentelemetry/api'
import { DbError } from '../errors/db-error.ts'
import { messageOf } from '../errors/wire.ts'

/** What a server quotes may be a value that was given to it. */
const QUOTED = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/g

/** A thrown thing as a span shows it. A database that quotes the values it was given is not quoted. */
export function exceptionOf(thrown: unknown): Exception & { message: string } {
  const message = messageOf(thrown)
  if (!(thrown instanceof Error)) return { name: 'Error', message }
  const { name, stack, code } = thrown as Error & { code?: unknown }
  const shown = isTelling(thrown) ? message.replace(QUOTED, '"…"') : message
  return {
    name: String(name),
    message: shown,
    stack: typeof stack === 'string' ? (shown === message ? stack : stack.replace(message, () => shown)) : '',
    ...(typeof code === 'string' ? { code } : {}),
  }
}

/** `error.type`: the code where there is one, for a database fault its kind. */
export function errorTypeOf(thrown: unknown): string {
  if (thrown instanceof DbError) return thrown.kind
  if (!(thrown instanceof Error)) return typeof thrown
  const { code } = thrown as { code?: unknown }
  return typeof code === 'string' ? code : thrown.name
}

const isTelling = (thrown: Error): boolean => thrown instanceof DbError && thrown.kind === 'other'
