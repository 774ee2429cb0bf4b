import { type LintReport, lintArchitecture, Plugin, type Tools } from '#heddle'
import { domainsDirsOf } from '../configuration.ts'

/**
 * Checks the sources of all domains on disk against the rules of the architecture, and compares them with what this process has seen
 * since its start.
 */
export default class LintArchitecture extends Plugin {
  static override thread = 'primary' as const
  #bus
  #http
  #registry
  #domainsDirs: string[]
  #toolsDir: string
  /** The current run. Requests that come meanwhile share it. */
  #run: Promise<LintReport> | undefined

  constructor({ http, config, event_bus, registry }: Tools) {
    super()
    this.#bus = event_bus
    this.#http = http
    this.#registry = registry
    this.#domainsDirs = domainsDirsOf(config)
    this.#toolsDir = config.get('TOOLS_DIR', { default: 'src/tools' })
  }

  override onBoot() {
    this.#http.addEndpoint('/system/lint', 'GET', this.lint, {
      tags: ['system'],
      summary: 'The architecture lint',
      description: 'Isolation, contracts, tables, routes, migrations, and what the process shows besides.',
    })
  }

  lint(): Promise<LintReport> {
    this.#run ??= this.#report().finally(() => {
      this.#run = undefined
    })
    return this.#run
  }

  async #report(): Promise<LintReport> {
    return lintArchitecture(this.#domainsDirs, this.#toolsDir, {
      since: new Date(performance.timeOrigin).toISOString(),
      topology: await this.#bus.getTopology(),
      uncalledTools: this.#registry.getUncalledTools(),
    })
  }
}
