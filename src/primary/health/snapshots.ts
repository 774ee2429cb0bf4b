import type { ToLane } from '../../transport/messages.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { Hub } from '../events/hub.ts'
import type { Health } from './health.ts'

/** Changes are sent to the lanes this much later, together, milliseconds. */
const SNAPSHOT_MS = 50

/** Sends to the lanes what plugins there may read at any time: the health of the process, and the subscribers of each event. */
export class Snapshots {
  readonly #health: Health
  readonly #hub: Hub
  readonly #lanes: () => readonly Lane[]
  #timer: NodeJS.Timeout | undefined

  constructor(health: Health, hub: Hub, lanes: () => readonly Lane[]) {
    this.#health = health
    this.#hub = hub
    this.#lanes = lanes
  }

  take(): ToLane {
    const subscribers: Record<string, string[]> = {}
    for (const [event, entry] of Object.entries(this.#hub.topology())) subscribers[event] = entry.subscribers
    return { type: 'snapshot', dump: this.#health.dump(), subscribers }
  }

  sendSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      const snapshot = this.take()
      for (const lane of this.#lanes()) if (lane.state === 'ready') lane.post(snapshot)
    }, SNAPSHOT_MS).unref()
  }
}
