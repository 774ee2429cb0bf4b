import { type Data, type HttpContext, Plugin, type Tools } from '#heddle'
import { PageFiles } from './page-files.ts'

/** A plugin that serves one page: it reads the page's files and registers `showPage` and `showFile`. */
export abstract class PagePlugin extends Plugin {
  protected readonly http
  protected readonly files = new PageFiles()

  constructor({ http }: Tools) {
    super()
    this.http = http
  }

  async showPage(_data: Data, context: HttpContext) {
    await this.files.send('index.html', context)
  }

  async showFile({ file }: { file: string }, context: HttpContext) {
    await this.files.send(file, context)
  }
}
