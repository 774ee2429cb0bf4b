import type { EventBus, Payload, Subscriber, TopologyEntry } from '../../contracts/event-bus.ts'
import type { Owner } from '../../contracts/owner.ts'
import type { Tool, ToolRuntime } from '../../contracts/tool.ts'
import { type EventContract, loadEventContracts } from '../../schemas/event-contracts.ts'
import { checkPayload, snapshotOf } from '../../schemas/payload-check.ts'
import { ContractFaults } from './contract-faults.ts'
import {
  checkEventName,
  checkFunction,
  checkPublishOptions,
  checkRequestOptions,
  checkSubscribeOptions,
} from './options.ts'

/**
 * The bus as one plugin sees it, on whatever transport the thread has. Contracts are held against payloads here, where they are published;
 * what is no JSON the transport refuses.
 */
export default class EventBusTool implements Tool {
  readonly name = 'event_bus'
  #runtime: ToolRuntime
  #contracts: ReadonlyMap<string, EventContract> = new Map()
  readonly #faults = new ContractFaults((message) => this.#runtime.log('ERROR', message))

  constructor(runtime: ToolRuntime) {
    this.#runtime = runtime
  }

  /** The contracts as they stand on disk when this thread starts. */
  async boot(): Promise<void> {
    const { contracts, faults } = await loadEventContracts(this.#runtime.settings.domainsDir)
    this.#contracts = contracts
    const messages = faults.map(({ message }) => message)
    // Not awaited: the thread's boot does not depend on it, and a primary that does not answer has worse troubles.
    this.#runtime.callPrimary('contract-faults', [messages]).catch(() => {})
  }

  serve(method: string, [messages]: readonly unknown[]): void {
    if (method === 'contract-faults') this.#faults.tell(messages as string[])
  }

  api(owner: Owner): EventBus {
    const { bus } = this.#runtime.host
    const contracts = this.#contracts
    return {
      // A fault rejects, it is never thrown at a caller who does not await. No async function: it would cost two more promises.
      publish: (event, payload, given) => {
        try {
          checkEventName(event)
          const options = checkPublishOptions(given)
          const contract = contracts.get(event)
          const check = contract === undefined ? undefined : checkPayload(event, contract, payload)
          if (check === undefined) return bus.publish(owner.name, event, payload, options)
          const asGiven = snapshotOf(payload)
          return check.then(() => bus.publish(owner.name, event, asGiven, options))
        } catch (fault) {
          return Promise.reject(fault)
        }
      },
      request: async <T extends Payload>(event: string, payload: Payload, options?: { timeoutMs?: number }) => {
        checkEventName(event)
        const timeoutMs = checkRequestOptions(options)
        const contract = contracts.get(event)
        const check = contract === undefined ? undefined : checkPayload(event, contract, payload)
        if (check === undefined) return (await bus.request(owner.name, event, payload, timeoutMs)) as T
        const asGiven = snapshotOf(payload)
        await check
        return (await bus.request(owner.name, event, asGiven, timeoutMs)) as T
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
