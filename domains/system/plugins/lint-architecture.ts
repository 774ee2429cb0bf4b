import { type LintReport, Plugin, type Tools } from '#heddle'
import { lintReport } from '../lint-report.ts'

/** Checks the architecture of all domains on request. */
export default class LintArchitecture extends Plugin {
  static override thread = 'primary' as const
  #tools
  /** The current run. Requests that come meanwhile share it. */
  #run: Promise<LintReport> | undefined

  constructor({ http, config, event_bus, registry }: Tools) {
    super()
    this.#tools = { http, config, event_bus, registry }
  }

  override onBoot() {
    this.#tools.http.addEndpoint('/system/lint', 'GET', this.lint, {
      tags: ['system'],
      summary: 'The architecture lint',
      description: 'Isolation, contracts, tables, routes, migrations, and what the process shows besides.',
    })
  }

  lint(): Promise<LintReport> {
    this.#run ??= lintReport(this.#tools).finally(() => {
      this.#run = undefined
    })
    return this.#run
  }
}
