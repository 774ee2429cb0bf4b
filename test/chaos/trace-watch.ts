import type { EventRecord } from '../../src/contracts/event-bus.ts'
import { until } from '../support/until.ts'
import type { Poster } from './orders.ts'

const RECONNECT_MS = 20
/** The stream tells a moment later. */
const TOLD_MS = 10_000
const FRAME_START = 'data: '

/** Collects every event record of the process from `/system/traces/stream`. */
export class TraceWatch {
  readonly records = new Map<string, EventRecord>()
  /** Times that the stream broke and its new snapshot did not reach back to what was seen before: what happened in between is not known. */
  gaps = 0
  readonly #service: Poster
  readonly #leave = new AbortController()
  #done: Promise<void> = Promise.resolve()

  constructor(service: Poster) {
    this.#service = service
  }

  /** Resolves when the stream is open: nothing that is published after is missed. */
  async start(): Promise<void> {
    const response = await this.#open()
    this.#done = this.#read(response)
  }

  /** Resolves when all of them are told of, or nobody tells any more. */
  async told(ids: readonly string[]): Promise<void> {
    await until(() => ids.every((id) => this.records.has(id)), 'all of them', TOLD_MS).catch(() => {})
  }

  async stop(): Promise<void> {
    this.#leave.abort()
    await this.#done
  }

  #open(): Promise<Response> {
    return this.#service.fetch('/system/traces/stream', { signal: this.#leave.signal })
  }

  async #read(first: Response): Promise<void> {
    let response: Response | null = first
    while (!this.#leave.signal.aborted) {
      try {
        response ??= await this.#open()
        await this.#readFrames(response)
      } catch {
        // Broken off: by `stop`, by the end of the process, or for nothing; then the snapshot of the next stream tells whether anything is missing.
      }
      response = null
      if (!this.#leave.signal.aborted) await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS))
    }
  }

  async #readFrames(response: Response): Promise<void> {
    const decoder = new TextDecoder()
    let text = ''
    for await (const chunk of response.body!) {
      const frames = (text + decoder.decode(chunk as Uint8Array, { stream: true })).split('\n\n')
      text = frames.pop()!
      for (const frame of frames) if (frame.startsWith(FRAME_START)) this.#take(frame.slice(FRAME_START.length))
    }
  }

  #take(json: string): void {
    const frame = JSON.parse(json) as EventRecord | { snapshot: true; records: EventRecord[] }
    if (!('snapshot' in frame)) {
      this.records.set(frame.id, frame)
      return
    }
    const reachesBack = this.records.size === 0 || frame.records.some(({ id }) => this.records.has(id))
    if (!reachesBack) this.gaps++
    for (const record of frame.records) this.records.set(record.id, record)
  }
}
