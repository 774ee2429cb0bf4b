import { STATUS_CODES } from 'node:http'

const lines = new Map<number, string>()

/** `404 Not Found`: from Node's table, so that no text of a plugin gets into the status line. */
export function statusLine(status: number): string {
  let line = lines.get(status)
  if (line === undefined) {
    line = `${status} ${STATUS_CODES[status] ?? 'Unknown'}`
    lines.set(status, line)
  }
  return line
}
