// What a result and an error mean as an answer.
import { CATALOGUE, DbError, type ErrorCode, HeddleError } from '../../core/errors/catalogue.ts'
import { causeOf, isInstance, readable } from '../../core/errors/description.ts'
import { HttpError, hasLine } from '../../core/http/http-error.ts'
import { ownWork } from '../../core/schedule/own-work.ts'
import { type AnswerSource, jsonAnswer } from './json-answer.ts'
import { type BodySource, streamOf } from './stream/body-source.ts'

// Taken before plugins can replace it.
const { stringify: toJson } = JSON

/** What `cache-control` says of an answer for one browser. */
export const PERSONAL = 'private, no-store'

/** What a handler has set for its answer so far. */
interface AnswerSettings extends AnswerSource {
  readonly head: string
  readonly chosenStatus: number
  /** Of the route's option; 200 without one. */
  readonly routeStatus: number
  readonly binary: Uint8Array | null
  /** Only together with `binary`. */
  readonly file: BodySource | null
  readonly isPersonal?: boolean | undefined
  dropBody(): void
  setHeader(name: string, value: string): void
}

/** An answer, ready to be written. */
export interface Reply {
  status: number
  /** `name: value` lines, each ended by CR LF. Always has the content type when there is a body that is no JSON. */
  head: string
  /** JSON text, bytes, or null for none. */
  body: string | Uint8Array | null
  /** A body in pieces, instead of `body`. Its sender closes it. */
  file?: BodySource
}

export const JSON_TYPE = 'application/json; charset=utf-8'

/** Seconds that a client is asked to wait before it tries again. */
export const RETRY_AFTER_SEC = 1

/** The status that a handler's return value means. */
export function statusOf(result: unknown, settings: AnswerSettings): number {
  if (settings.chosenStatus !== 0) return settings.chosenStatus
  const failed = typeof result === 'object' && result !== null && (result as { success?: unknown }).success === false
  return failed ? 400 : settings.routeStatus
}

/** The answer that a handler's return value means. @throws HTTP_ANSWER_INVALID */
export function replyOf(result: unknown, context: AnswerSettings): Reply {
  const status = statusOf(result, context)
  const stream = streamOf(result)
  if (status === 204 || status === 304) {
    void (stream ?? context.file)?.close()
    return { status, head: context.head, body: null }
  }
  if (stream !== null) return { status, head: context.head, body: null, file: stream }
  if (context.binary !== null) {
    const { binary, file, head } = context
    if (file !== null) return { status, head, body: null, file }
    // JSON is the type of a body that has none.
    return { status, head, body: binary.byteLength > 0 || hasLine(head, 'content-type') ? binary : null }
  }
  if (result === undefined && status >= 300 && status < 400) return { status, head: context.head, body: null }
  // A handler's JSON may be sent as another content type: the head decides.
  return { status, head: context.head, body: ownWork(jsonAnswer, result, context) }
}

/** The failure envelope of an error that the runtime makes. */
export function errorReply(code: ErrorCode, message?: string, details?: unknown): Reply {
  const [status, fallback] = CATALOGUE[code]
  const envelope = { success: false as const, error: message ?? fallback, details }
  let head = ''
  if (status === 503 || code === 'HTTP_IDEMPOTENCY_RUNNING') head = `retry-after: ${RETRY_AFTER_SEC}\r\n`
  if (status === 401) head = 'www-authenticate: Bearer\r\n'
  return { status, head, body: envelopeText(envelope) }
}

/** The details come from the thrown error: they are left out when they are no JSON. */
const envelopeText = (envelope: {
  success: false
  error: string
  code?: string | undefined
  details?: unknown
}): string => readable(() => toJson(envelope)) ?? toJson({ ...envelope, details: undefined })

function thrownReply({ status, message, code, details, headers }: HttpError, context: AnswerSettings): Reply {
  context.dropBody()
  for (const [name, value] of Object.entries(headers)) {
    // It may be asked for twice, and cookies add up.
    if (!context.head.includes(`${name}: ${value}\r\n`)) context.setHeader(name, value)
  }
  const envelope = { success: false as const, error: message, code, details }
  return { status, head: context.head, body: envelopeText(envelope) }
}

/** Overload that strangers can cause at will: a log line for each would be one more thing that they can cause. The calls are counted as failed. */
const EXPECTED: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['AUTH_BUSY', 'AUTH_ABANDONED', 'AUTH_UNAVAILABLE'])

/** The status of the answer to a thrown error. */
export function statusOfThrown(thrown: unknown, context: AnswerSettings): number {
  return isInstance(thrown, HttpError) ? thrown.status : replyOfThrown(thrown, context).reply.status
}

/**
 * The answer to a thrown error. A client learns of what plugins throw for it, of its own mistakes and of overload, and nothing of other errors.
 * @param context of the request: a thrown answer has its headers
 */
export function replyOfThrown(thrown: unknown, context: AnswerSettings): { reply: Reply; isFault: boolean } {
  if (isInstance(thrown, HttpError)) return { reply: thrownReply(thrown, context), isFault: thrown.status >= 500 }
  const answer = replyOfError(thrown)
  if (context.isPersonal) answer.reply.head += `cache-control: ${PERSONAL}\r\nvary: cookie\r\n`
  return answer
}

function replyOfError(thrown: unknown): { reply: Reply; isFault: boolean } {
  if (isInstance(thrown, HeddleError)) {
    if (thrown.code.startsWith('HTTP_') && thrown.status < 500) {
      return { reply: errorReply(thrown.code, thrown.message, thrown.details), isFault: false }
    }
    // The message names the server.
    if (thrown.status === 503 && thrown.code.startsWith('KV_')) {
      return {
        reply: errorReply('HTTP_OVERLOADED', 'The key-value store does not take this at the moment'),
        isFault: true,
      }
    }
    if (thrown.status === 503 && !isInstance(thrown, DbError)) {
      return { reply: errorReply('HTTP_OVERLOADED', thrown.message), isFault: !EXPECTED.has(thrown.code) }
    }
  }
  // What is wrong with the database is for the log. The client may try again, also where code between has wrapped the error.
  const { kind, isPassing = false } = databaseErrorIn(thrown) ?? {}
  if (kind === 'serialization') return { reply: errorReply('DB_CONTENDED'), isFault: true }
  if (isPassing)
    return { reply: errorReply('HTTP_OVERLOADED', 'The database does not take this at the moment'), isFault: true }
  return { reply: errorReply('HTTP_INTERNAL'), isFault: true }
}

/** Causes of causes that are looked at: a cause may be its own. */
const CAUSES_MAX = 5

function databaseErrorIn(thrown: unknown): DbError | null {
  let each = thrown
  for (let depth = 0; depth <= CAUSES_MAX; depth++) {
    if (isInstance(each, DbError)) return each
    each = causeOf(each)
  }
  return null
}
