import { Plugin, type Tools } from '#heddle'

const NAMESPACE = 'bench-items'
const REPORT_DELAY_MS = 20

/** The only subscriber of `bench.item_created`. It counts in its thread and writes the count to the shared state now and then. */
export default class CountItems extends Plugin {
  #bus
  #http
  #state
  #unreported = 0
  #report: NodeJS.Timeout | undefined

  constructor({ event_bus, http, state }: Tools) {
    super()
    this.#bus = event_bus
    this.#http = http
    this.#state = state
  }

  override async onBoot() {
    this.#bus.subscribe('bench.item_created', ({ id }) => {
      if ((id as number) > 0) this.#unreported++
      this.#report ??= setTimeout(() => this.#flush(), REPORT_DELAY_MS)
    })
    this.#http.addEndpoint('/bench/items/handled', 'GET', () => this.handled(), { tags: ['bench'] })
  }

  override async onStop() {
    clearTimeout(this.#report)
  }

  async handled() {
    return { success: true, data: { handled: (await this.#state.get('handled', { namespace: NAMESPACE })) ?? 0 } }
  }

  #flush() {
    const count = this.#unreported
    this.#unreported = 0
    this.#report = undefined
    void this.#state.increment('handled', count, { namespace: NAMESPACE })
  }
}
