import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Heddle } from './heddle.ts'
import { limitOf } from './until.ts'

/** How often a limit is looked at while nothing comes, milliseconds. */
const LOOK_MS = 100

// biome-ignore lint/suspicious/noExplicitAny: a test asserts what it is
type Frame = any

/** A client of a stream: collects its frames and its comments. Leaves with the test. */
export class SseClient {
  readonly response: Response
  readonly frames: Frame[] = []
  readonly comments: string[] = []
  isEnded = false
  readonly #leave: AbortController
  #wake: () => void = () => {}

  private constructor(response: Response, leave: AbortController) {
    this.response = response
    this.#leave = leave
    void this.#read()
  }

  static async open(t: TestContext, heddle: Heddle, path: string): Promise<SseClient> {
    const leave = new AbortController()
    t.after(() => leave.abort())
    return new SseClient(await heddle.fetch(path, { signal: leave.signal }), leave)
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder()
    let text = ''
    try {
      for await (const chunk of this.response.body!) {
        const events = (text + decoder.decode(chunk as Uint8Array, { stream: true })).split('\n\n')
        text = events.pop()!
        for (const event of events) {
          if (event.startsWith(':')) this.comments.push(event)
          else {
            assert.match(event, /^data: [^\n]*$/)
            this.frames.push(JSON.parse(event.slice('data: '.length)))
          }
        }
        this.#wake()
      }
    } catch (thrown) {
      // The test has ended, or the server has cut the connection.
      if (thrown instanceof assert.AssertionError) throw thrown
    }
    this.isEnded = true
    this.#wake()
  }

  /** Waits until the frames, the comments or the end are as wanted. */
  async until(condition: () => boolean, what: string, timeoutMs = 10_000): Promise<void> {
    const isLate = limitOf(timeoutMs)
    while (!condition()) {
      if (isLate()) throw new Error(`Not within ${timeoutMs} ms: ${what}; got ${this.frames.length} frames`)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, LOOK_MS)
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }

  /** The first frame that fits, once it is there. */
  async frame(fits: (frame: Frame) => boolean, what: string): Promise<Frame> {
    await this.until(() => this.frames.some(fits), what)
    return this.frames.find(fits)
  }

  close(): void {
    this.#leave.abort()
  }
}
