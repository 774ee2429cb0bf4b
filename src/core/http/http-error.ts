// The error that is an answer.
import { HeddleError } from '../errors/catalogue.ts'
import { headerName, headerText } from './header-text.ts'

export interface HttpErrorOptions {
  /** A name for programs, for example `EMAIL_TAKEN`: it goes into the body. */
  code?: string
  /** Further information as JSON: it goes into the body. What is no JSON is left out. */
  details?: unknown
  /** Headers of the answer. They replace those that are set already. */
  headers?: Readonly<Record<string, string>>
  /** Why, for the log of an answer of 500 and above. The client does not see it. */
  cause?: unknown
}

/**
 * An answer that is thrown, from any depth of a handler, guard or hook: `{success: false, error: message, code?, details?}` with that status.
 * Below 500 it is no fault of the handler; from 500 on it is logged. Unlike those of other errors, its message is for the client.
 *
 * Headers and cookies that are set already stay. What a `context.commit` or transaction has done that it ends is rolled back.
 */
export class HttpError extends Error {
  override name = 'HttpError'
  /** From 400 to 599. */
  readonly status: number
  readonly code: string | undefined
  readonly details: unknown
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>

  /**
   * @param message for the client. Default: the standard phrase of the status, for example `Forbidden`
   * @throws HTTP_STATUS_INVALID outside of 400 to 599; HTTP_HEADER_INVALID
   */
  constructor(status: number, message?: string, { code, details, headers = {}, cause }: HttpErrorOptions = {}) {
    super(message ?? standardPhrase(status), cause === undefined ? undefined : { cause })
    if (!Number.isInteger(status) || status < 400 || status > 599) {
      throw new HeddleError(
        'HTTP_STATUS_INVALID',
        `The status of an HttpError is an integer from 400 to 599, not ${String(status)}`,
      )
    }
    this.status = status
    this.code = code
    this.details = details
    this.headers = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => {
        const lower = headerName(name)
        return [lower, headerText(lower, value)]
      }),
    )
  }
}

/** Loaded on demand: no lane needs anything else of Node's HTTP. */
function standardPhrase(status: number): string {
  return process.getBuiltinModule('node:http').STATUS_CODES[status] ?? 'Error'
}
