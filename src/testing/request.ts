import type { RequestOptions, TestResponse } from './app.ts'

/** A request as it goes out: headers in lower case, the body as bytes. */
export interface PreparedRequest {
  method: string
  headers: Record<string, string>
  body: Uint8Array | null
}

export function prepare(method: string, { body, headers = {}, token }: RequestOptions): PreparedRequest {
  const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  if (token !== undefined) lower.authorization = `Bearer ${token}`
  const isRaw = body === undefined || typeof body === 'string' || body instanceof Uint8Array
  if (!isRaw) lower['content-type'] ??= 'application/json'
  else if (typeof body === 'string') lower['content-type'] ??= 'text/plain'
  return { method: method.toUpperCase(), headers: lower, body: bytesOf(body) }
}

function bytesOf(body: unknown): Uint8Array | null {
  if (body === undefined) return null
  if (body instanceof Uint8Array) return body
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
}

export function responseOf(status: number, headers: Headers, bytes: Uint8Array): TestResponse {
  return {
    status,
    headers,
    body: bytes.byteLength === 0 ? undefined : parsed(headers.get('content-type') ?? '', bytes),
  }
}

function parsed(type: string, bytes: Uint8Array): unknown {
  const text = (): string => Buffer.from(bytes).toString()
  if (/^application\/(?:[\w.-]+\+)?json\b/.test(type)) return JSON.parse(text())
  return type.startsWith('text/') ? text() : bytes
}
