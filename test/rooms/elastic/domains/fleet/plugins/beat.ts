import { Plugin, type Tools } from '#heddle'

/** A job that says when it fires. */
export default class Beat extends Plugin {
  #http
  #log
  #scheduler

  constructor({ http, logger, scheduler }: Tools) {
    super()
    this.#http = http
    this.#log = logger
    this.#scheduler = scheduler
  }

  override onBoot() {
    this.#scheduler.every('beat', 200, () => this.#log.info('beat'))
    this.#http.addEndpoint('/jobs', 'GET', async () => ({ jobs: await this.#scheduler.list() }))
  }
}
