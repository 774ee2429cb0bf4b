// What a lane answers, and what it is answered that calls the primary or publishes.
import { toWire, type WireError } from '../../core/errors/catalogue.ts'
import type { DeliveryHub, DeliverySink } from '../../runtime/events/event-server.ts'
import { KIND } from '../../transport/frames/frames.ts'
import type { Outbox } from '../../transport/rings/outbox.ts'

/** Answers the calls of one lane's tools to the primary. A lane that is gone hears nothing: its outbox is closed. */
export class CallAnswers {
  readonly #outbox: Outbox
  readonly #onCall: (tool: string, method: string, args: unknown[]) => unknown

  constructor(outbox: Outbox, onCall: (tool: string, method: string, args: unknown[]) => unknown) {
    this.#outbox = outbox
    this.#onCall = onCall
  }

  call(id: number, json: string): void {
    const [tool, method, args] = JSON.parse(json) as [string, string, unknown[]]
    try {
      const result = this.#onCall(tool, method, args)
      if (result instanceof Promise)
        result.then((value) => this.#answer(id, value)).catch((error) => this.#fail(id, error))
      else this.#answer(id, result)
    } catch (error) {
      this.#fail(id, error)
    }
  }

  /** @throws for what is no JSON */
  #answer(id: number, value: unknown): void {
    this.#outbox.sendText(KIND.CALL_RESULT, id, JSON.stringify(value ?? null) ?? 'null')
  }

  #fail(id: number, error: unknown): void {
    this.#outbox.sendText(KIND.CALL_ERROR, id, JSON.stringify(toWire(error)))
  }
}

/** Answers the publications of one lane, once per batch of frames: everything up to a number is accepted, except what was refused. */
export class PublishAnswers {
  readonly #outbox: Outbox
  #answeredUpTo = -1
  #refused: { sequence: number; error: WireError }[] = []

  constructor(outbox: Outbox) {
    this.#outbox = outbox
  }

  accept(sequence: number): void {
    this.#answeredUpTo = sequence
  }

  refuse(sequence: number, error: unknown): void {
    this.#refused.push({ sequence, error: toWire(error) })
    this.#answeredUpTo = sequence
  }

  /** Sends the answers to what has come since the last call. */
  send(): void {
    if (this.#answeredUpTo < 0) return
    for (const { sequence, error } of this.#refused)
      this.#outbox.sendText(KIND.PUBLISH_REFUSED, sequence, JSON.stringify(error))
    if (this.#refused.length > 0) this.#refused = []
    this.#outbox.sendText(KIND.PUBLISH_ACCEPTED, this.#answeredUpTo, '')
    this.#answeredUpTo = -1
  }
}

/** Counts the deliveries in flight in one thread, and hands their answers on. One that was given up does not count, and its late answer changes nothing here. */
export class DeliveryCount implements DeliverySink {
  count = 0
  readonly #hub: DeliveryHub
  /** Deliveries that were given up and not answered. */
  readonly #abandoned = new Set<number>()

  constructor(hub: DeliveryHub) {
    this.#hub = hub
  }

  /** Gives a delivery up: a handler that never ends must not use up the thread's room for events. */
  abandon(deliveryId: number): void {
    this.#abandoned.add(deliveryId)
    this.count--
  }

  /** The thread leaves, and has not begun them. */
  unbegun(deliveries: readonly number[]): void {
    for (const id of deliveries) this.#answered(id)
    this.#hub.unbegun(deliveries)
  }

  readonly delivered = (deliveryId: number): void => {
    this.#answered(deliveryId)
    this.#hub.delivered(deliveryId)
  }

  reply(deliveryId: number, json: string): void {
    this.#answered(deliveryId)
    this.#hub.reply(deliveryId, json)
  }

  failed(deliveryId: number, error: WireError): void {
    this.#answered(deliveryId)
    this.#hub.failed(deliveryId, error)
  }

  #answered(deliveryId: number): void {
    if (this.#abandoned.size === 0 || !this.#abandoned.delete(deliveryId)) this.count--
  }
}
