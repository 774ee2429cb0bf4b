interface Cookie {
  value: string
  path: string
  endsMs: number
}

/** The cookies of one service, for where `fetch` keeps none. A browser shows none to it, so there it stays empty. */
export class CookieJar {
  readonly #cookies = new Map<string, Cookie>()

  keep(response: Response): void {
    for (const line of response.headers.getSetCookie?.() ?? []) {
      const [pair = '', ...attributes] = line.split(';')
      const [name, value] = splitAt(pair)
      let path = '/'
      let endsMs = Number.POSITIVE_INFINITY
      let hasMaxAge = false
      for (const attribute of attributes) {
        const [key, text] = splitAt(attribute)
        const lower = key.toLowerCase()
        if (lower === 'path' && text.startsWith('/')) path = text
        else if (lower === 'max-age') {
          hasMaxAge = true
          endsMs = Date.now() + Number(text) * 1000
        } else if (lower === 'expires' && !hasMaxAge) endsMs = Date.parse(text)
      }
      if (endsMs > Date.now()) this.#cookies.set(name, { value, path, endsMs })
      else this.#cookies.delete(name)
    }
  }

  /** The header for a path; undefined when there is none to send. */
  headerFor(path: string): string | undefined {
    const sent: string[] = []
    for (const [name, cookie] of this.#cookies) {
      if (cookie.endsMs <= Date.now()) this.#cookies.delete(name)
      else if (path.startsWith(cookie.path)) sent.push(`${name}=${cookie.value}`)
    }
    return sent.length > 0 ? sent.join('; ') : undefined
  }
}

function splitAt(text: string): [name: string, value: string] {
  const at = text.indexOf('=')
  return at < 0 ? [text.trim(), ''] : [text.slice(0, at).trim(), text.slice(at + 1).trim()]
}
