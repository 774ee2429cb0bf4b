import { Agent, get } from 'node:http'

const EVERY_MS = 20
const ANSWER_MAX_MS = 10_000

/** Asks a healthy route every few milliseconds, whether it has answered before or not: what its clients see while something else is done to the service. The route answers with its `pid`. */
export class RouteWatch {
  /** The longest time without an answer. */
  gapMs = 0
  /** Requests that failed, of `requests`, and of each status or error how many. */
  failed = 0
  readonly failures: Record<string, number> = {}
  requests = 0
  /** How often the process was another one than before. */
  restarts = 0
  #pid = 0
  #lastMs = 0
  #isOver = false
  #asking: Promise<void> = Promise.resolve()
  readonly #port: number
  readonly #path: string
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 256, maxFreeSockets: 2 })

  constructor(port: number, path: string) {
    this.#port = port
    this.#path = path
  }

  /** Resolves with whether it has answered. */
  async firstAnswer(isHopeless: () => boolean): Promise<boolean> {
    while (!isHopeless()) {
      if ((await this.get(this.#path, 2_000)) !== null) return true
      await pause(EVERY_MS)
    }
    return false
  }

  start(): void {
    this.#lastMs = performance.now()
    this.#asking = this.#askOn()
  }

  /** Resolves when every request has had its answer. */
  async stop(): Promise<void> {
    if (this.#isOver) return
    this.#isOver = true
    this.#sawAnswer()
    await this.#asking
    this.#agent.destroy()
  }

  /** The body of an answer; null when it failed. */
  async get(path: string, timeoutMs = ANSWER_MAX_MS): Promise<string | null> {
    const { status, text } = await this.#fetch(path, timeoutMs)
    return status === '200' ? text : null
  }

  #fetch(path: string, timeoutMs: number): Promise<{ status: string; text: string }> {
    return new Promise((resolve) => {
      const options = { host: '127.0.0.1', port: this.#port, path, agent: this.#agent, timeout: timeoutMs }
      const failed = ({ message }: Error) => resolve({ status: message, text: '' })
      const request = get(options, (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk) => {
          text += chunk
        })
        response.on('end', () => resolve({ status: String(response.statusCode), text }))
        response.on('error', failed)
      })
      request.on('timeout', () => request.destroy(new Error('timeout')))
      request.on('error', failed)
    })
  }

  async #askOn(): Promise<void> {
    const waiting = new Set<Promise<void>>()
    while (!this.#isOver) {
      const one = this.#ask().finally(() => waiting.delete(one))
      waiting.add(one)
      await pause(EVERY_MS)
    }
    await Promise.all(waiting)
  }

  async #ask(): Promise<void> {
    this.requests++
    const { status, text } = await this.#fetch(this.#path, ANSWER_MAX_MS)
    if (status !== '200') {
      this.failed++
      this.failures[status] = (this.failures[status] ?? 0) + 1
      return
    }
    this.#sawAnswer()
    const { pid } = JSON.parse(text) as { pid: number }
    if (this.#pid !== 0 && pid !== this.#pid) this.restarts++
    this.#pid = pid
  }

  #sawAnswer(): void {
    const nowMs = performance.now()
    this.gapMs = Math.max(this.gapMs, nowMs - this.#lastMs)
    this.#lastMs = nowMs
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
