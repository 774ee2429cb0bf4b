import { readdir, readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { HeddleError, type HttpContext } from '#heddle'

const ASSETS = new URL('./assets/', import.meta.url)
const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** The files of one page under `assets/`, and the file that all pages share. A file that was not there at the start is not served. */
export class PageFiles {
  readonly #files = new Map<string, { bytes: Uint8Array; type: string }>()

  async read(folder: string): Promise<void> {
    const names = await readdir(new URL(`${folder}/`, ASSETS))
    await Promise.all([
      this.#add('tokens.css', 'tokens.css'),
      ...names.map((name) => this.#add(name, `${folder}/${name}`)),
    ])
  }

  async #add(name: string, path: string): Promise<void> {
    const type = TYPES[extname(name)]
    if (type !== undefined) this.#files.set(name, { bytes: await readFile(new URL(path, ASSETS)), type })
  }

  /** @throws HTTP_NOT_FOUND */
  send(name: string, context: HttpContext): void {
    const file = this.#files.get(name)
    if (file === undefined) throw new HeddleError('HTTP_NOT_FOUND', `The page has no file ${name}`)
    context.setHeader('cache-control', 'no-cache')
    context.sendBinary(file.bytes, file.type)
  }
}
