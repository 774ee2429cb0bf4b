import type { EndpointOptions } from '../../contracts/http-request.ts'

/** A name, or fields of `data` by their names: whatever else stands there is not looked into. */
const ONE_PARAMETER = String.raw`(?:[\w$]+|\{[\w$\s,:]*\})`
/** A function of one parameter at most, with or without the word `function`; or `data => …`. */
const TAKES_ONE = new RegExp(
  String.raw`^(?:async\b\s*)?(?:function\b\s*)?\*?\s*(?:#?[\w$]+\s*)?\(\s*(?:${ONE_PARAMETER}\s*,?\s*)?\)|^(?:async\s+)?[\w$]+\s*=>`,
)
/** What reaches all arguments, or hides what it calls with them. */
export const REACHES_ALL = /\b(?:arguments|eval)\b|\[native code\]/

/**
 * True when nothing that a route runs can read the headers of its requests, as long as they have no body: then they need not be copied for
 * it. Its handler has no parameter for the context, and none of its options looks at a header. False wherever that is not certain.
 */
export function ignoresHeaders(
  handler: (...args: never[]) => unknown,
  { authValidator, idempotency, etag, body }: EndpointOptions,
): boolean {
  if (authValidator !== undefined || idempotency !== undefined || etag === true || typeof body === 'string')
    return false
  const source = Function.prototype.toString.call(handler)
  return TAKES_ONE.test(source) && !REACHES_ALL.test(source)
}
