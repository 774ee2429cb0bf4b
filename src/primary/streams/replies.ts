import { randomBytes } from 'node:crypto'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { replyChannelOf } from '../../runtime/streams/keys.ts'
import type { ReplyOutcome } from '../../runtime/streams/stream-commands.ts'
import type { RedisClient } from '../../stores/redis/client.ts'

interface OpenRequest {
  readonly event: string
  /** Groups that have not failed. */
  open: number
  resolve(json: string): void
  reject(error: Error): void
  readonly timer: NodeJS.Timeout
}

/** Requests of this replica that wait for the reply of a subscriber on any replica. A reply is lost when it comes while the connection is lost. */
export class Replies {
  readonly #channel: string
  /** A connection of its own, which only listens. */
  readonly #listening: RedisClient
  readonly #open = new Map<number, OpenRequest>()
  #lastNumber = 0
  #subscribed: Promise<unknown> | null = null

  constructor(listening: RedisClient, replica: string) {
    this.#listening = listening
    // Channels do not depend on the database number: another deployment on the same server may have a replica of this name.
    this.#channel = `${replyChannelOf(replica)}:${randomBytes(8).toString('hex')}`
  }

  /**
   * Publishes an event and waits for a reply.
   * @param groups how many subscribers there are
   * @param publish takes the address of the reply
   * @returns the first object that a subscriber returns, as JSON
   */
  async request(
    event: string,
    groups: number,
    timeoutMs: number,
    publish: (replyTo: string) => Promise<unknown>,
  ): Promise<string> {
    this.#subscribed ??= this.#listening.subscribe(this.#channel, (message) => this.#onMessage(message))
    try {
      await this.#subscribed
    } catch (error) {
      this.#subscribed = null
      throw error
    }
    this.#lastNumber = (this.#lastNumber + 1) & 0x7fffffff
    const number = this.#lastNumber
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#open.delete(number)
        reject(new HeddleError('EVENT_BUS_REQUEST_TIMEOUT', `Nobody replied to ${event} within ${timeoutMs} ms`))
      }, timeoutMs)
      this.#open.set(number, { event, open: groups, resolve, reject, timer })
      publish(`${this.#channel} ${number}`).catch((error: Error) => this.#take(number)?.reject(error))
    })
  }

  #onMessage(message: string): void {
    let answer: [number: number, outcome: ReplyOutcome, text: string]
    try {
      answer = JSON.parse(message)
    } catch {
      return
    }
    if (!Array.isArray(answer)) return
    const [number, outcome, text] = answer
    if (outcome === 'reply') this.#take(number)?.resolve(text)
    else {
      const request = this.#open.get(number)
      if (request === undefined || --request.open > 0) return
      this.#take(number)?.reject(new HeddleError('EVENT_HANDLER_FAILED', text))
    }
  }

  #take(number: number): OpenRequest | undefined {
    const request = this.#open.get(number)
    if (request === undefined) return undefined
    this.#open.delete(number)
    clearTimeout(request.timer)
    return request
  }

  close(): void {
    for (const { timer } of this.#open.values()) clearTimeout(timer)
    this.#open.clear()
  }
}
