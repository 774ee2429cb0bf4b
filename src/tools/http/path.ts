const MAX_PATH_CHARS = 1024

// Keys of a handler's `data` that only the runtime may set.
const RESERVED = /^(_auth|_files|__proto__$|constructor$|prototype$)/

/** Why a route's path is not valid; undefined when it is, like `/users/:id` and `/files/*`. */
export function pathFault(path: unknown): string | undefined {
  if (typeof path !== 'string') return 'the path must be a string'
  if (!path.startsWith('/')) return "the path must start with '/'"
  if (path.length > MAX_PATH_CHARS) return `the path must have at most ${MAX_PATH_CHARS} characters`
  if (/[?#]/.test(path)) return "the path must not contain '?' or '#'"
  if (/[\s\p{Cc}]/u.test(path)) return 'the path must not contain blanks or control characters'
  if (path.includes('//')) return "the path must not contain '//'"

  const segments = path.slice(1).split('/')
  const names = new Set<string>()
  for (const [index, segment] of segments.entries()) {
    if (segment.includes('*') && (segment !== '*' || index !== segments.length - 1)) {
      return "'*' must be the whole last segment"
    }
    const braced = /^\{([A-Za-z_][A-Za-z0-9_]*)\}$/.exec(segment)?.[1]
    if (braced !== undefined) return `'{${braced}}' is no parameter here: write ':${braced}'`
    if (!segment.includes(':')) continue
    const name = /^:([A-Za-z_][A-Za-z0-9_]*)$/.exec(segment)?.[1]
    if (name === undefined) return `a parameter must fill its segment, like '/:id', not '/${segment}'`
    if (RESERVED.test(name)) return `the parameter name '${name}' is reserved`
    if (names.has(name)) return `the parameter ':${name}' stands there twice`
    names.add(name)
  }
  return undefined
}
