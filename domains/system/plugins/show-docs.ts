import { type Data, type HttpContext, Plugin, type Tools } from '#heddle'
import { PageFiles } from '../page-files.ts'

/** A page that shows what `/system/openapi.json` and `/system/asyncapi.json` say, and tries it out. */
export default class ShowDocs extends Plugin {
  static override thread = 'primary' as const
  #http
  #files = new PageFiles()

  constructor({ http }: Tools) {
    super()
    this.#http = http
  }

  override async onBoot() {
    await this.#files.read('docs')
    const tags = ['system']
    this.#http.addEndpoint('/system/docs', 'GET', this.showPage, { tags, summary: 'The interface to read and to try' })
    this.#http.addEndpoint('/system/docs/:file', 'GET', this.showFile, { tags, summary: 'What that page loads' })
  }

  showPage(_data: Data, context: HttpContext) {
    this.#files.send('index.html', context)
  }

  showFile({ file }: { file: string }, context: HttpContext) {
    this.#files.send(file, context)
  }
}
