import { readdir, readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { type Data, HeddleError, type HttpContext, Plugin, type Tools } from '#heddle'

const ASSETS = new URL('../assets/', import.meta.url)
const PAGE = 'index.html'
const TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

interface Asset {
  bytes: Uint8Array
  type: string
}

/** The page at `/system/dashboard`, and what it loads. */
export default class ShowDashboard extends Plugin {
  static override thread = 'primary' as const
  #http
  #assets = new Map<string, Asset>()

  constructor({ http }: Tools) {
    super()
    this.#http = http
  }

  override async onBoot() {
    for (const name of await readdir(new URL('dashboard/', ASSETS))) await this.#read(`dashboard/${name}`, name)
    await this.#read('tokens.css', 'tokens.css')
    const tags = ['system']
    this.#http.addEndpoint('/system/dashboard', 'GET', this.showPage, { tags, summary: 'The dashboard' })
    this.#http.addEndpoint('/system/dashboard/:file', 'GET', this.showFile, {
      tags,
      summary: 'What the dashboard loads',
    })
  }

  async #read(path: string, name: string): Promise<void> {
    const type = TYPES[extname(name)]
    if (type !== undefined) this.#assets.set(name, { bytes: await readFile(new URL(path, ASSETS)), type })
  }

  showPage(_data: Data, context: HttpContext) {
    this.#send(PAGE, context)
  }

  showFile({ file }: { file: string }, context: HttpContext) {
    this.#send(file, context)
  }

  #send(name: string, context: HttpContext): void {
    const asset = this.#assets.get(name)
    if (asset === undefined) throw new HeddleError('HTTP_NOT_FOUND', `The dashboard has no file ${name}`)
    context.setHeader('cache-control', 'no-cache')
    context.sendBinary(asset.bytes, asset.type)
  }
}
