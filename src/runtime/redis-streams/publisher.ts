// Publishes to streams.
import type { LogLevel } from '../../contracts/logger.ts'
import type { Settings } from '../../core/config/schema.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { RedisClient } from '../../stores/redis/client.ts'
import { answerFault } from '../../stores/redis/fault.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import { EventNames, type Publisher } from '../events/publication.ts'
import { encodeEntry } from './entry.ts'
import { streamOf } from './keys.ts'
import { ring, SCRIPTS, STREAM_SCRIPTS } from './stream-commands.ts'

/** Maximum events of one command, and about how many characters: the server does nothing else meanwhile. */
const BATCH_MAX = 128
const BATCH_MAX_CHARS = 256 * 1024

interface PublisherOptions {
  settings: Settings
  /** Name of the connection: `lane 0`. */
  role: string
  /** Called for each event the store has taken. */
  published: (frame: EventFrame) => void
  /** Called when the store has not taken some. */
  refused?: (() => void) | undefined
  log: (level: LogLevel, message: string, fields?: Record<string, unknown>) => void
}

interface Publication {
  readonly frame: EventFrame
  readonly resolve: (id: string) => void
  readonly reject: (fault: unknown) => void
}

/** Events of one turn of the loop, for one stream. */
interface Batch {
  readonly stream: string
  publications: Publication[]
  /** Envelopes and payloads, alternating. */
  args: string[]
  chars: number
}

/** Publishes to the streams for one thread, on a connection of its own. */
export class ThreadPublisher implements Publisher {
  readonly redis: RedisClient
  readonly #options: PublisherOptions
  readonly #names: EventNames
  /** Maximum number of publications the store has not confirmed. */
  readonly #maxOpen: number
  readonly #batches = new Map<string, Batch>()
  #isScheduled = false
  #open = 0

  constructor(options: PublisherOptions) {
    const { settings, role, log } = options
    this.#options = options
    this.redis = new RedisClient(settings, {
      name: `heddle:${settings.replicaId}:${role}`,
      log,
      scripts: STREAM_SCRIPTS,
    })
    this.#names = new EventNames(settings.eventBusMaxNames)
    this.#maxOpen = Math.ceil(settings.eventBusMaxQueue / settings.lanes)
  }

  /**
   * Resolves when the store has the event. @throws EVENT_NAMES_LIMIT at once; rejects with EVENT_BUS_FULL, EVENT_BUS_UNAVAILABLE: with
   * `details.outcome` `unknown` the store may have it all the same
   */
  publish(frame: EventFrame, replyTo: string | null = null): Promise<string> {
    this.#names.check(frame.emitter, frame.event)
    return this.send(frame, replyTo)
  }

  /** The same, whatever the number of names: a transaction has committed the event. */
  send(frame: EventFrame, replyTo: string | null = null): Promise<string> {
    if (this.#open >= this.#maxOpen) {
      const message = `${this.#open} events are on their way to the store already`
      return Promise.reject(new HeddleError('EVENT_BUS_FULL', message))
    }
    this.#open++
    return new Promise((resolve, reject) => {
      const publication = { frame, resolve, reject }
      const fields = encodeEntry(frame, this.#options.settings.replicaId, replyTo)
      if (replyTo === null) this.#add(publication, fields)
      else this.#settle([publication], this.#addOne(streamOf(frame.event), fields))
    })
  }

  #add(publication: Publication, fields: string[]): void {
    const { event } = publication.frame
    let batch = this.#batches.get(event)
    if (batch === undefined) {
      batch = { stream: streamOf(event), publications: [], args: [], chars: 0 }
      this.#batches.set(event, batch)
    }
    const [, envelope, , payload] = fields as [string, string, string, string]
    batch.publications.push(publication)
    batch.args.push(envelope, payload)
    batch.chars += envelope.length + payload.length
    if (batch.publications.length >= BATCH_MAX || batch.chars >= BATCH_MAX_CHARS) this.#sendBatch(batch)
    else if (!this.#isScheduled) {
      this.#isScheduled = true
      setImmediate(this.#endTurn)
    }
  }

  readonly #endTurn = (): void => {
    this.#isScheduled = false
    for (const batch of this.#batches.values()) if (batch.publications.length > 0) this.#sendBatch(batch)
  }

  #sendBatch(batch: Batch): void {
    const { redis } = this
    const { stream, publications, args } = batch
    batch.publications = []
    batch.args = []
    batch.chars = 0
    if (publications.length > 1) this.#settle(publications, redis.run(SCRIPTS.publishBatch, [stream], args))
    else this.#settle(publications, this.#addOne(stream, ['e', args[0]!, 'p', args[1]!]))
  }

  #addOne(stream: string, fields: string[]): Promise<unknown> {
    const added = this.redis.command('xadd', [stream, '*', ...fields])
    ring(this.redis, stream)
    return added
  }

  /** @param sent resolves with the numbers and errors of failed publications, when several are sent together */
  #settle(publications: readonly Publication[], sent: Promise<unknown>): void {
    sent.then(
      (reply) => {
        this.#open -= publications.length
        const failed = publications.length > 1 && (reply as unknown[]).length > 0 ? this.#faultsOf(reply) : null
        for (let n = 0; n < publications.length; n++) {
          const { frame, resolve, reject } = publications[n]!
          const fault = failed?.get(n + 1)
          if (fault !== undefined) {
            this.#options.refused?.()
            reject(fault)
            continue
          }
          this.#options.published(frame)
          resolve(frame.id)
        }
      },
      (fault) => {
        this.#open -= publications.length
        this.#options.refused?.()
        for (const { frame, reject } of publications) reject(unpublished(frame.event, fault))
      },
    )
  }

  #faultsOf(reply: unknown): Map<number, HeddleError> {
    const list = reply as (number | string)[]
    const faults = new Map<number, HeddleError>()
    for (let n = 0; n < list.length; n += 2) {
      const fault = answerFault(String(list[n + 1]), 'XADD', this.#options.settings)
      faults.set(
        Number(list[n]),
        new HeddleError('EVENT_BUS_UNAVAILABLE', `Not published: ${fault.message}`, { cause: fault }),
      )
    }
    return faults
  }

  close(): Promise<void> {
    return this.redis.close()
  }
}

function unpublished(event: string, fault: unknown): unknown {
  if (!(fault instanceof HeddleError)) return fault
  const isUnknown = (fault.details as { outcome?: string } | undefined)?.outcome === 'unknown'
  const doubt = isUnknown ? '; it may have been taken all the same' : ''
  return new HeddleError('EVENT_BUS_UNAVAILABLE', `${event} was not published${doubt}: ${fault.message}`, {
    cause: fault,
    details: fault.details,
  })
}
