import type { Random } from '../../support/random.ts'
import { requestText } from '../../support/raw-client.ts'

/** What marks a request: an answer that has one belongs to the connection that sent it. No mutation makes another's by chance. */
export const TOKEN = /tok[0-9a-z]{16}/g

export function makeToken(random: Random): string {
  return `tok${random.text(16)}`
}

type Build = (random: Random, token: string, prefix: string) => Buffer

const KINDS: Record<string, Build> = {
  get: (random, token, prefix) =>
    requestText('GET', `${prefix}/echo/${token}?q=${token}&n=${random.below(100)}`, headersOf(random, token)),
  missing: (random, token) => requestText('GET', `/nowhere/${token}`, headersOf(random, token)),
  delete: (random, token, prefix) => requestText('DELETE', `${prefix}/echo?q=${token}`, headersOf(random, token)),
  json: (random, token, prefix) =>
    requestText(
      'POST',
      `${prefix}/echo/${token}`,
      { ...headersOf(random, token), 'content-type': 'application/json' },
      JSON.stringify({ token, list: [1, -2.5e3, null, true], nested: { text: `é${random.text(random.below(40))}` } }),
    ),
  checked: (random, token, prefix) =>
    requestText(
      'POST',
      `${prefix}/checked/${random.below(1000)}?page=${random.below(9)}`,
      { ...headersOf(random, token), 'content-type': 'application/json' },
      JSON.stringify({ name: token, address: { city: random.text(5) } }),
    ),
  chunked: (random, token, prefix) =>
    requestText(
      'POST',
      `${prefix}/echo`,
      { ...headersOf(random, token), 'transfer-encoding': 'chunked' },
      chunksOf(random, Buffer.from(token + random.text(random.below(200)))),
    ),
  form: (random, token, prefix) =>
    requestText(
      'POST',
      `${prefix}/echo`,
      { ...headersOf(random, token), 'content-type': 'application/x-www-form-urlencoded' },
      `token=${token}&a=1+2%2B3&b=%C3%A9&c=${random.text(random.below(30))}`,
    ),
  multipart: (random, token, prefix) => {
    const part = (disposition: string, content: string): string =>
      `--cut\r\ncontent-disposition: form-data; ${disposition}\r\n\r\n${content}\r\n`
    return requestText(
      'POST',
      `${prefix}/echo`,
      { ...headersOf(random, token), 'content-type': 'multipart/form-data; boundary=cut' },
      `${part('name="token"', token)}${part('name="file"; filename="a.txt"', random.text(random.below(300)))}--cut--\r\n`,
    )
  },
  bytes: (random, token, prefix) =>
    requestText('PUT', `${prefix}/echo?q=${token}`, headersOf(random, token), random.bytes(random.below(3_000))),
  stream: (random, token, prefix) => requestText('GET', `${prefix}/say-back?q=${token}`, headersOf(random, token)),
  guarded: (random, token, prefix) =>
    requestText('GET', `${prefix}/private?q=${token}`, {
      ...headersOf(random, token),
      authorization: `Bearer ${random.pick(['good', 'bad', token])}`,
    }),
  signed: (random, token, prefix) =>
    requestText('GET', `${prefix}/me`, {
      ...headersOf(random, token),
      authorization: `Bearer ${['{"alg":"HS256"}', `{"sub":"${token}"}`, token].map(base64url).join('.')}`,
    }),
}

/** One valid request of any kind, to a handler in a lane or in the primary. */
export function makeRequest(random: Random, token: string): Buffer {
  const build = random.pick(Object.values(KINDS))
  return build(random, token, random.pick(['/w', '/p']))
}

function headersOf(random: Random, token: string): Record<string, string> {
  const headers: Record<string, string> = { 'x-request-id': token, 'user-agent': 'probe/1.0' }
  if (random.chance(0.3)) headers.cookie = `a=${random.text(5)}; b="${token}"`
  if (random.chance(0.2)) headers.origin = 'http://elsewhere.test'
  if (random.chance(0.1)) headers.connection = random.pick(['close', 'keep-alive', 'upgrade'])
  if (random.chance(0.1)) headers['accept-encoding'] = 'gzip, br'
  return headers
}

function chunksOf(random: Random, bytes: Buffer): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const piece = bytes.subarray(at, at + 1 + random.below(40))
    parts.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n'))
    at += piece.length
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')])
}

function base64url(text: string): string {
  return Buffer.from(text).toString('base64url')
}
