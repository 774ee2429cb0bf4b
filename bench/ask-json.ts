import type { BenchServer } from './server.ts'

export interface Asking {
  /** The JSON body; the request is a POST then. */
  post?: unknown
  /** The status that is expected. Default 200. */
  status?: number
}

/** One JSON request outside of any measurement. @throws when the answer has another status than expected */
export async function askJson<T>(server: BenchServer, path: string, { post, status = 200 }: Asking = {}): Promise<T> {
  const headers = { 'content-type': 'application/json' }
  const init = post === undefined ? {} : { method: 'POST', body: JSON.stringify(post), headers }
  const response = await fetch(`http://${server.host}:${server.port}${path}`, init)
  const text = await response.text()
  if (response.status !== status) throw new Error(`${server.name} answered ${path} with ${response.status}: ${text}`)
  return JSON.parse(text) as T
}
