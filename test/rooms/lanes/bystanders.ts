import { Agent, request } from 'node:http'

/** Refused clients wait this long, milliseconds: as long as they are served otherwise, so that shares of requests are shares of time. */
const RETRY_MS = 20

/** What clients of a plugin have seen that does no harm. */
export interface Bystanders {
  readonly served: number
  /** Their lane died while it had them. */
  readonly lost: number
  /** Answered with anything else that is no success: there was no lane for them. */
  readonly refused: number
  /** Most that were lost or refused one after another, without a success between them. */
  readonly longestRun: number
  /** Longest time without a success, milliseconds. */
  readonly longestGapMs: number
  stop(): Promise<void>
}

/** Clients that ask for a path one request after another, each on a connection that it keeps. */
export function bystanders(port: number, path: string, clients: number): Bystanders {
  const agent = new Agent({ keepAlive: true, maxSockets: clients })
  const seen = { served: 0, lost: 0, refused: 0, longestRun: 0, longestGapMs: 0 }
  let run = 0
  let servedMs = performance.now()
  let isStopped = false

  const ask = (): Promise<number> =>
    new Promise((resolve) => {
      const sent = request({ agent, port, host: '127.0.0.1', path }, (answer) => {
        answer.resume()
        answer.on('close', () => resolve(answer.statusCode!))
      })
      sent.on('error', () => resolve(0))
      sent.end()
    })
  const askAgainAndAgain = async (): Promise<void> => {
    while (!isStopped) {
      const status = await ask()
      const nowMs = performance.now()
      if (status === 200) {
        seen.served++
        run = 0
        seen.longestGapMs = Math.max(seen.longestGapMs, nowMs - servedMs)
        servedMs = nowMs
        continue
      }
      if (status === 500) seen.lost++
      else seen.refused++
      seen.longestRun = Math.max(seen.longestRun, ++run)
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }
  const running = Array.from({ length: clients }, askAgainAndAgain)
  return {
    get served() {
      return seen.served
    },
    get lost() {
      return seen.lost
    },
    get refused() {
      return seen.refused
    },
    get longestRun() {
      return seen.longestRun
    },
    get longestGapMs() {
      return Math.max(seen.longestGapMs, performance.now() - servedMs)
    },
    async stop() {
      seen.longestGapMs = Math.max(seen.longestGapMs, performance.now() - servedMs)
      servedMs = Number.POSITIVE_INFINITY
      isStopped = true
      await Promise.all(running)
      agent.destroy()
    },
  }
}
