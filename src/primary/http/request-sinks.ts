// Sinks of plugins, which are told of each request that has ended.
import type { RequestSink } from '../../contracts/registry.ts'
import type { ObservedRequest, RequestWatcher } from '../../contracts/tracing.ts'
import { exactMs } from '../../core/schedule/steady-time.ts'
import { added, tellAll } from '../../runtime/kernel/listeners.ts'

/** Watches the requests of the listener while somebody wants to hear of them: without a sink a request costs nothing. */
export class RequestSinks implements RequestWatcher {
  readonly #watchers: RequestWatcher[]
  readonly #onFault: (thrown: unknown) => void
  readonly #sinks: RequestSink[] = []

  /** @param watchers of the listener */
  constructor(watchers: RequestWatcher[], onFault: (thrown: unknown) => void) {
    this.#watchers = watchers
    this.#onFault = onFault
  }

  /** @returns a function that removes the sink */
  add(sink: RequestSink): () => void {
    if (this.#sinks.length === 0) this.#watchers.push(this)
    const remove = added(this.#sinks, sink)
    return () => {
      remove()
      const at = this.#watchers.indexOf(this)
      if (this.#sinks.length === 0 && at >= 0) this.#watchers.splice(at, 1)
    }
  }

  ended({ requestId, method, route, startMs }: ObservedRequest, status: number): void {
    const { path = '', plugin = '' } = route ?? {}
    // Its own pages poll.
    if (path.startsWith('/system/') && status < 500) return
    const record = { request_id: requestId, method, route: path, plugin, status, duration_ms: exactMs() - startMs }
    tellAll(this.#sinks, record, this.#onFault)
  }
}
