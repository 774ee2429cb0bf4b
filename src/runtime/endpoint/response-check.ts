import { readVariable } from '../../core/config/plugin-variables.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { faultsOf, listed } from '../../core/schemas/standard-schema.ts'
import type { Reply } from './reply.ts'
import type { Route } from './run.ts'

// Taken before plugins can replace it.
const { parse: parseJson } = JSON

let isDevelopment: boolean | undefined

/** In production answers go out unchecked: a client is better off with a key too many than without an answer. */
export function isResponseChecked({ options }: Pick<Route, 'options'>): boolean {
  if (options.response === undefined) return false
  // Not before the first request: `.env` is read after the modules were loaded.
  isDevelopment ??= readVariable('NODE_ENV') !== 'production'
  return isDevelopment
}

/**
 * Holds the JSON of a successful answer, as the client would get it, against the route's `response` schema.
 * Failures, redirects, bytes and answers without a body are not what it describes.
 * @throws HTTP_RESPONSE_INVALID that names the path and the fault
 */
export async function checkResponse(
  { options }: Pick<Route, 'options'>,
  method: string,
  { status, body }: Reply,
): Promise<void> {
  if (options.response === undefined || status >= 300 || typeof body !== 'string') return
  const { issues } = await options.response['~standard'].validate(parseJson(body))
  if (issues === undefined) return
  const message = `what ${method} answered with ${status} does not fit its response schema: ${listed(issues)}`
  throw new HeddleError('HTTP_RESPONSE_INVALID', message, { details: faultsOf(issues) })
}
