import { until } from '../../core/schedule/waiting.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { LocalWorker } from './local-worker.ts'

/** Close code and reason (RFC 6455, section 7.4.1). */
const GOING_AWAY = [1001, 'the service is shutting down'] as const

/** Closes the WebSockets of a process that stops: messages that are being handled are finished first. */
export class SocketDrain {
  readonly #lanes: readonly Lane[]
  readonly #local: LocalWorker

  constructor(lanes: readonly Lane[], local: LocalWorker) {
    this.#lanes = lanes
    this.#local = local
  }

  /** From now on each socket is closed as soon as no message of it is being handled. */
  begin(): void {
    for (const { sockets } of this.#lanes) sockets.closeWhenIdle(...GOING_AWAY)
    this.#local.closeSocketsWhenIdle(...GOING_AWAY)
  }

  /** Waits for the sockets, and closes those that are left at the deadline. */
  async end(deadlineMs: number): Promise<void> {
    const isOver = (): boolean =>
      this.#lanes.every(({ sockets }) => sockets.size === 0) && this.#local.server.sockets.size === 0
    await until(isOver, deadlineMs)
    for (const { sockets } of this.#lanes) sockets.closeAll(...GOING_AWAY)
    this.#local.closeSockets(...GOING_AWAY)
  }
}
