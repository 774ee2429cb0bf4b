/** Changes that are remembered. */
const CHANGES_MAX = 50

/** Reloads, starts and deaths of lanes, the newest first. */
export class Changes {
  all = []

  onHello({ started_at: at, status, lanes }) {
    this.#add(at, 'start', 'The process started')
    this.#learn(status, lanes)
  }

  onSecond({ status, lanes }) {
    this.#learn(status, lanes)
  }

  #learn(status, lanes) {
    const reload = status?.reload
    if (reload !== undefined) {
      if (reload.ok) this.#add(reload.at, 'reload', 'The lanes were reloaded')
      else this.#add(reload.at, 'failed-reload', 'A reload failed: the old code goes on')
    }
    for (const { index, deaths } of lanes) for (const { at } of deaths) this.#add(at, 'death', `Lane ${index} died`)
  }

  #add(at, kind, text) {
    if (this.all.some((known) => known.at === at && known.text === text)) return
    this.all.push({ at, kind, text })
    this.all.sort((a, b) => (a.at < b.at ? 1 : -1))
    this.all.length = Math.min(this.all.length, CHANGES_MAX)
  }
}
