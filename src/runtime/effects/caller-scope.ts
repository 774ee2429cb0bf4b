import { createHash } from 'node:crypto'

// Taken before plugins can replace it.
const { stringify: toJson } = JSON

/** A text of a caller that is stored as it is, characters at most. */
const TEXT_MAX = 200

/** What a request has that may say who sends it. */
export interface Credentials {
  readonly headers: Readonly<Record<string, string>>
  readonly cookies: Readonly<Record<string, string>>
}

/** Whose a stored answer is, by the text that the route gives. */
export const ownScope = (scope: string): string => ` scope ${short(toJson(scope))}`

/** Whose a stored answer is, by the user whom `http.identify` has named. */
export const scopeOfUser = (id: string): string => ` user ${short(toJson(id))}`

/**
 * Whose a stored answer is, by the claims of a token: its issuer and its subject, or the token itself where they have none. One token may be
 * that of many users, whom their sessions tell apart.
 */
export function scopeOfClaims(claims: object, credentials: Credentials, cookies: readonly string[]): string {
  const { iss, sub } = claims as { iss?: unknown; sub?: unknown }
  const isNamed = sub !== undefined && sub !== null
  const who = isNamed ? short(toJson([iss ?? null, sub])) : `token ${digest(authorizationOf(credentials))}`
  return ` ${who}${sessionsOf(credentials, cookies)}`
}

/**
 * Whose a stored answer is, where nobody is known: of whoever has the same credentials, which a handler may read. Without any it is
 * everybody's who knows the key.
 */
export function scopeOfNobody(credentials: Credentials, cookies: readonly string[]): string {
  const authorization = authorizationOf(credentials)
  const token = authorization === '' ? '' : ` authorization ${digest(authorization)}`
  return token + sessionsOf(credentials, cookies)
}

const authorizationOf = ({ headers }: Credentials): string => headers.authorization ?? ''

/** @param names of the cookies that may hold a session */
function sessionsOf({ cookies }: Credentials, names: readonly string[]): string {
  const held = names.flatMap((name) => (cookies[name] === undefined ? [] : [[name, cookies[name]]]))
  return held.length === 0 ? '' : ` session ${digest(toJson(held))}`
}

const short = (text: string): string => (text.length <= TEXT_MAX ? text : digest(text))
const digest = (text: string): string => createHash('sha256').update(text).digest('base64url')
