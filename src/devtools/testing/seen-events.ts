// What a test has seen of the events, and waits for.
import type { DeliveryFailure, EventRecord } from '../../contracts/event-bus.ts'
import type { Delivered, Payload } from '../../contracts/events.ts'
import { causalForest, type TreeNode } from '../../runtime/events/trace-ring.ts'

/** An event with its payload, as its subscribers get it. */
export interface PublishedEvent<Name extends string = string> extends EventRecord {
  data: Delivered<Name, Payload>
}

export interface EventOptions<Seen extends EventRecord> {
  /** Waits for an event for which this returns true. */
  where?: (event: Seen) => boolean
  /** Milliseconds after which the wait fails. Default 10,000. */
  timeoutMs?: number
}

const DEFAULT_TIMEOUT_MS = 10_000
const POLL_MS = 5
/** Most events that a message shows. */
const SHOWN_MAX = 40

interface Waiter<Seen> {
  name: string
  where: (event: Seen) => boolean
  resolve(event: Seen): void
  reject(error: Error): void
}

/** The events of one test: those that came, and the waits for those that have not. */
export class SeenEvents<Seen extends EventRecord> {
  readonly #seen: Seen[] = []
  readonly #failures: DeliveryFailure[] = []
  readonly #waiters = new Set<Waiter<Seen>>()
  #ended: string | null = null

  add(event: Seen): void {
    this.#seen.push(event)
    for (const waiter of this.#waiters) {
      if (waiter.name !== event.event) continue
      try {
        if (waiter.where(event)) waiter.resolve(event)
      } catch (thrown) {
        waiter.reject(thrown as Error)
      }
    }
  }

  addFailure(failure: DeliveryFailure): void {
    this.#failures.push(failure)
  }

  /** No more events will come: all waits fail. */
  end(why: string): void {
    this.#ended = why
    for (const { name, reject } of this.#waiters) reject(new Error(`No event ${name}: ${why}.\n${this.describe()}`))
  }

  list(name?: string): Seen[] {
    return this.#seen.filter(({ event }) => name === undefined || event === name)
  }

  tree(): TreeNode[] {
    return causalForest(this.#seen)
  }

  wait(name: string, { where = () => true, timeoutMs = DEFAULT_TIMEOUT_MS }: EventOptions<Seen> = {}): Promise<Seen> {
    // The stack of the caller, since the stack of a timer shows nothing of the test.
    const missing = new Error()
    Error.captureStackTrace(missing, this.wait)
    const frames = missing.stack!.slice(missing.stack!.indexOf('\n'))
    let timer: NodeJS.Timeout | undefined
    let waiter: Waiter<Seen> | undefined
    return new Promise<Seen>((resolve, reject) => {
      const fail = (why: string): void => {
        missing.message = `${why}\n${this.describe()}`
        missing.stack = `Error: ${missing.message}${frames}`
        reject(missing)
      }
      const earlier = this.list(name).find(where)
      if (earlier !== undefined) return resolve(earlier)
      if (this.#ended !== null) return fail(`No event ${name}: ${this.#ended}.`)
      waiter = { name, where, resolve, reject }
      this.#waiters.add(waiter)
      timer = setTimeout(() => {
        const others = this.list(name).length
        if (others === 0) fail(`No event ${name} came within ${timeoutMs} ms.`)
        else fail(`No event ${name} that fits \`where\` came within ${timeoutMs} ms; ${others} came that do not.`)
      }, timeoutMs)
    }).finally(() => {
      clearTimeout(timer)
      if (waiter !== undefined) this.#waiters.delete(waiter)
    })
  }

  /** The events so far as the text of a message: the causal forest, indented, and the failures. */
  describe(): string {
    if (this.#seen.length === 0) return 'No event at all was published.'
    const lines = outline(this.tree(), new Map(this.#seen.map(({ id, payload_keys }) => [id, payload_keys])))
    const left = lines.length - SHOWN_MAX
    const shown = left > 0 ? [`  … ${left} before these`, ...lines.slice(-SHOWN_MAX)] : lines
    const failures = this.#failures.map(
      ({ event, subscriber, error, attempts }) =>
        `  ${subscriber} failed at ${event} (${attempts === 1 ? '1 attempt' : `${attempts} attempts`}): ${error}`,
    )
    return ['These came:', ...shown, ...failures].join('\n')
  }
}

function outline(nodes: readonly TreeNode[], keys: ReadonlyMap<string, string[]>, indent = '  '): string[] {
  return nodes.flatMap(({ id, event, emitter, children }) => [
    `${indent}${event} { ${keys.get(id)!.join(', ')} } by ${emitter}`,
    ...outline(children, keys, `${indent}  `),
  ])
}

/** Waits until nothing is pending. @returns how many still are pending after `timeoutMs` */
export async function pendingAfter(pending: () => number, timeoutMs: number): Promise<number> {
  const deadlineMs = performance.now() + timeoutMs
  while (pending() > 0 && performance.now() < deadlineMs) await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  return pending()
}
