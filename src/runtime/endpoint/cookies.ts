import { isToken, withoutBlanks } from '../../core/http/header-text.ts'

/** Only a host itself can set a cookie of such a name, and one at a time: another one was made to look like it. */
const OF_THIS_HOST = /^__Host-/i

/**
 * The cookies of a request by name, without those whose name is no token. Of a name that comes twice, the first, as it is of the closest
 * path; none where the name says that there is one. Source: RFC 6265, sections 4.1.1 and 5.4; draft-ietf-httpbis-rfc6265bis, section 4.1.3.
 */
export function parseCookies(header: string | undefined): Readonly<Record<string, string>> {
  const cookies: Record<string, string> = Object.create(null)
  if (header === undefined) return cookies
  const twice: string[] = []
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=')
    if (equals < 0) continue
    const name = withoutBlanks(pair.slice(0, equals))
    if (!isToken(name)) continue
    if (name in cookies) {
      if (OF_THIS_HOST.test(name)) twice.push(name)
      continue
    }
    const raw = withoutBlanks(pair.slice(equals + 1))
    cookies[name] = decoded(raw.startsWith('"') && raw.endsWith('"') && raw.length > 1 ? raw.slice(1, -1) : raw)
  }
  for (const name of twice) delete cookies[name]
  return cookies
}

/** `setCookie` encodes what a cookie cannot hold. What somebody else has written may be anything. */
function decoded(text: string): string {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
