/** The cookies of a request by name; of a name that comes twice, the first, as it is of the closest path. Source: RFC 6265, section 5.4. */
export function parseCookies(header: string | undefined): Readonly<Record<string, string>> {
  const cookies: Record<string, string> = Object.create(null)
  if (header === undefined) return cookies
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=')
    if (equals < 0) continue
    const name = pair.slice(0, equals).trim()
    if (name === '' || name in cookies) continue
    const raw = pair.slice(equals + 1).trim()
    cookies[name] = decoded(raw.startsWith('"') && raw.endsWith('"') && raw.length > 1 ? raw.slice(1, -1) : raw)
  }
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
