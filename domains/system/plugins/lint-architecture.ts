import { delimiter } from 'node:path'
import { type LintReport, lintArchitecture, Plugin, type Tools } from '#heddle'

/** Checks the sources of all domains against the rules of the architecture, as they stand on disk now. */
export default class LintArchitecture extends Plugin {
  static override thread = 'primary' as const
  #http
  #domainsDirs: string[]
  #toolsDir: string
  /** The run that is under way: requests that come meanwhile wait for the same one. */
  #run: Promise<LintReport> | undefined

  constructor({ http, config }: Tools) {
    super()
    this.#http = http
    this.#domainsDirs = config
      .get('DOMAINS_DIR', { default: 'domains' })
      .split(delimiter)
      .filter((folder) => folder.trim() !== '')
    this.#toolsDir = config.get('TOOLS_DIR', { default: 'src/tools' })
  }

  override onBoot() {
    this.#http.addEndpoint('/system/lint', 'GET', this.lint, {
      tags: ['system'],
      summary: 'The architecture lint: isolation, contracts, tables, routes, migrations',
    })
  }

  lint(): Promise<LintReport> {
    this.#run ??= lintArchitecture(this.#domainsDirs, this.#toolsDir).finally(() => {
      this.#run = undefined
    })
    return this.#run
  }
}
