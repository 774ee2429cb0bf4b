import { readdir, readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { HeddleError, type HttpContext } from '#heddle'

/** For a server the package resolves to another file than for a browser. */
const LIT_HTML = new URL('../lit-html.js', import.meta.resolve('lit-html'))
/** What all pages have. */
const SHARED = ['tokens.css', 'header.css', 'icon.svg']
const ASSETS = new URL('./assets/', import.meta.url)
const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** The files of one page under `assets/`, and what all pages share. A file that was not there at the start is not served. */
export class PageFiles {
  readonly #files = new Map<string, { bytes: Uint8Array; type: string }>()

  async read(folder: string): Promise<void> {
    const names = await readdir(new URL(`${folder}/`, ASSETS))
    await Promise.all([
      ...SHARED.map((name) => this.#add(name, new URL(name, ASSETS))),
      this.#add('lit-html.js', LIT_HTML),
      ...names.map((name) => this.#add(name, new URL(`${folder}/${name}`, ASSETS))),
    ])
  }

  async #add(name: string, file: URL): Promise<void> {
    const type = TYPES[extname(name)]
    if (type !== undefined) this.#files.set(name, { bytes: await readFile(file), type })
  }

  /** @throws HTTP_NOT_FOUND */
  send(name: string, context: HttpContext): void {
    const file = this.#files.get(name)
    if (file === undefined) throw new HeddleError('HTTP_NOT_FOUND', `The page has no file ${name}`)
    context.setHeader('cache-control', 'no-cache')
    context.sendBinary(file.bytes, file.type)
  }
}
