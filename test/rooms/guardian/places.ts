import { request } from 'node:http'
import type { Heddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
export const TWO = { PROCESSES: '2', AUTH_SECRET_KEY: 'x'.repeat(32) }
/** With each request on a connection of its own, both of two processes answer one within so many, as good as surely. */
const TRIES = 60
export const START_MS = 60_000

interface Place {
  number: number
  of: number
  replica: string
  pid: number
}

/** The process that answers a request on a new connection. */
export function place(port: number): Promise<Place> {
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path: '/system/status', agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.on('end', () => resolve(JSON.parse(text).process))
    })
      .on('error', reject)
      .end()
  })
}

/** Those that answer, by number. */
async function places(port: number): Promise<Record<number, Place>> {
  const found: Record<number, Place> = {}
  for (let n = 0; n < TRIES && Object.keys(found).length < 2; n++) {
    const one = await place(port)
    found[one.number] = one
  }
  return found
}

export const bothAt = (port: number): Promise<Record<number, Place>> =>
  until(
    async () => {
      const found = await places(port)
      return Object.keys(found).length === 2 ? found : null
    },
    'both processes answer',
    START_MS,
  )

export const served = (heddle: Heddle): number => heddle.logs.filter(({ msg }) => msg.startsWith('Serving on')).length
