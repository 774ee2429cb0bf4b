/** Characters of a body that are shown. */
const BODY_MAX = 20_000

export interface OwnRequest {
  method: string
  path: string
  headers?: Record<string, string>
  body?: unknown
  timeout_ms: number
}

/** Sends a request to the process itself. One that is not answered in time, or whose answer goes on, tells what came until then. */
export async function sendRequest(
  url: string,
  { method, path, headers = {}, body, timeout_ms: timeoutMs }: OwnRequest,
) {
  const signal = AbortSignal.timeout(timeoutMs)
  const isText = typeof body === 'string'
  const type: Record<string, string> = body === undefined || isText ? {} : { 'content-type': 'application/json' }
  const init: RequestInit = { method, headers: { ...type, ...headers }, signal, redirect: 'manual' }
  if (body !== undefined) init.body = isText ? body : JSON.stringify(body)
  let response: Response
  try {
    response = await fetch(url + path, init)
  } catch (error) {
    if (signal.aborted) return { status: null, error: `There was no answer within ${timeoutMs} ms` }
    throw error
  }
  const text = await textOf(response)
  const shown = text.length > BODY_MAX ? `${text.slice(0, BODY_MAX)}… (${text.length} characters)` : text
  return {
    status: response.status,
    request_id: response.headers.get('x-request-id'),
    headers: Object.fromEntries(response.headers),
    body: shown === text ? parsed(text) : shown,
  }
}

/** What comes of a body until it ends, is longer than is shown, or the time is over. */
async function textOf(response: Response): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  try {
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk as Uint8Array, { stream: true })
      if (text.length > BODY_MAX) break
    }
  } catch {
    // The time is over: what came is told.
  }
  return text
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // It is no JSON.
    return text
  }
}
