import { type Data, type HttpContext, Plugin, type Tools } from '#heddle'
import { PageFiles } from '../page-files.ts'

/** The page at `/system/dashboard`, and what it loads. What it shows comes from `/system/dashboard/stream`. */
export default class ShowDashboard extends Plugin {
  static override thread = 'primary' as const
  #http
  #files = new PageFiles()

  constructor({ http }: Tools) {
    super()
    this.#http = http
  }

  override async onBoot() {
    await this.#files.read('dashboard')
    const tags = ['system']
    this.#http.addEndpoint('/system/dashboard', 'GET', this.showPage, { tags, summary: 'What the process does, live' })
    this.#http.addEndpoint('/system/dashboard/:file', 'GET', this.showFile, { tags, summary: 'What that page loads' })
  }

  showPage(_data: Data, context: HttpContext) {
    this.#files.send('index.html', context)
  }

  showFile({ file }: { file: string }, context: HttpContext) {
    this.#files.send(file, context)
  }
}
