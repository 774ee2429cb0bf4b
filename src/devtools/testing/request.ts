import type { RequestOptions, TestResponse } from './app.ts'

/** The options of `fetch`. A text, bytes, a form or a stream are sent unchanged, anything else as JSON. */
export function prepare(method: string, { body, headers: given, token }: RequestOptions): RequestInit {
  const headers = new Headers(given)
  if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
  const isStream = body instanceof ReadableStream
  const isText = body === undefined || typeof body === 'string'
  const isRaw = isText || isStream || body instanceof Uint8Array || body instanceof FormData
  if (!isRaw && !headers.has('content-type')) headers.set('content-type', 'application/json')
  const sent = isRaw ? (body as string | Buffer | FormData | ReadableStream | undefined) : JSON.stringify(body)
  const init: RequestInit = { method: method.toUpperCase(), headers, body: sent, redirect: 'manual' }
  return isStream ? { ...init, duplex: 'half' } : init
}

export async function responseOf(response: Response): Promise<TestResponse> {
  const { status, headers } = response
  const bytes = Buffer.from(await response.arrayBuffer())
  return {
    status,
    headers,
    body: bytes.byteLength === 0 ? undefined : parsed(headers.get('content-type') ?? '', bytes),
  }
}

function parsed(type: string, bytes: Buffer): unknown {
  if (/^application\/(?:[\w.-]+\+)?json\b/.test(type)) return JSON.parse(bytes.toString())
  return type.startsWith('text/') ? bytes.toString() : bytes
}
