import type { EventBus, Payload, Subscriber, TopologyEntry } from '../../contracts/event-bus.ts'
import type { Owner } from '../../contracts/owner.ts'
import type { Tool, ToolRuntime } from '../../contracts/tool.ts'
import {
  checkEventName,
  checkFunction,
  checkPublishOptions,
  checkRequestOptions,
  checkSubscribeOptions,
} from './options.ts'

/** The bus as one plugin sees it, on whatever transport the thread has. The transport checks the payload. */
export default class EventBusTool implements Tool {
  readonly name = 'event_bus'
  #runtime: ToolRuntime

  constructor(runtime: ToolRuntime) {
    this.#runtime = runtime
  }

  api(owner: Owner): EventBus {
    const { bus } = this.#runtime.host
    return {
      // A fault rejects, it is never thrown at a caller who does not await. No async function: it would cost two more promises.
      publish: (event, payload, options) => {
        try {
          checkEventName(event)
          return bus.publish(owner.name, event, payload, checkPublishOptions(options))
        } catch (fault) {
          return Promise.reject(fault)
        }
      },
      request: async <T extends Payload>(event: string, payload: Payload, options?: { timeoutMs?: number }) => {
        checkEventName(event)
        return (await bus.request(owner.name, event, payload, checkRequestOptions(options))) as T
      },
      subscribe: (event, handler, options) => {
        checkEventName(event)
        checkFunction('handler', handler)
        return bus.subscribe({ owner, event, handler: handler as Subscriber, options: checkSubscribeOptions(options) })
      },
      addListener: (listener) => {
        checkFunction('listener', listener)
        return bus.addListener(listener)
      },
      addFailureListener: (listener) => {
        checkFunction('listener', listener)
        return bus.addFailureListener(listener)
      },
      getTraceHistory: () => bus.history(),
      getSubscribers: () => {
        const topology = bus.topology()
        return topology instanceof Promise ? topology.then(subscribersOf) : subscribersOf(topology)
      },
      getTopology: () => bus.topology(),
      getDeadLetters: () => bus.deadLetters(),
      replayDeadLetter: (id) => bus.replayDeadLetter(id),
      deleteDeadLetter: (id) => bus.deleteDeadLetter(id),
    }
  }
}

function subscribersOf(topology: Record<string, TopologyEntry>): Record<string, string[]> {
  const subscribed = Object.entries(topology).filter(([, entry]) => entry.subscribers.length > 0)
  return Object.fromEntries(subscribed.map(([event, entry]) => [event, [...entry.subscribers]]))
}
