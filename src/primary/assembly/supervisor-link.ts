import type { Supervisor } from '../supervision/supervisor.ts'

/**
 * The supervisor, for the parts of the primary that are built before it. It is built last, because its lanes report to all of these
 * parts, and they ask about the lanes: this link closes the circle before the first lane starts.
 */
export class SupervisorLink {
  #supervisor: Supervisor | null = null

  connect(supervisor: Supervisor): void {
    this.#supervisor = supervisor
  }

  get supervisor(): Supervisor {
    if (this.#supervisor === null) throw new Error('The supervisor is not built yet')
    return this.#supervisor
  }
}
