/** Of `new Sessions(state, options)`. */
export interface SessionOptions {
  /** Name of the cookie. Default `__Host-session`, and `session` without `secure`. */
  cookie?: string
  /** Milliseconds until a session ends, counted from its start, or from its last use with `rolling`; a positive integer. Default 86,400,000 (a day). */
  ttlMs?: number
  /** A request that reads the session puts off its end, and that of the cookie, at most once a minute. Default false. */
  rolling?: boolean
  /** `None` for pages of another site, which `HTTP_CORS_ORIGINS` has to name, with `HTTP_CORS_CREDENTIALS`. Default `Lax`. */
  sameSite?: 'Strict' | 'Lax' | 'None'
  /** False for browsers that reach the service without TLS by another name than localhost. Default true. */
  secure?: boolean
  /** Namespace of `state`. Default `sessions`. */
  namespace?: string
}
