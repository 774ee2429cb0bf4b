import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'
import { type Data, HeddleError, type HttpContext } from '#heddle'

/** Of other packages, which an application has not installed: the package of heddle has these files itself, with their licences. */
const LIBRARIES = new URL('./libraries/', import.meta.url)

/** A file of another package, for the browser. @param installed where it is in the repository */
export function libraryFile(name: string, installed: () => URL): URL {
  const packed = new URL(name, LIBRARIES)
  return existsSync(packed) ? packed : installed()
}

/** For a server the package resolves to another file than for a browser. */
const LIT_HTML = libraryFile('lit-html.js', () => new URL('../lit-html.js', import.meta.resolve('lit-html')))
const ASSETS = new URL('./assets/', import.meta.url)
const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}
/** Smaller files are sent as they are. */
const COMPRESSED_MIN_BYTES = 1024
/** The one that is preferred first. */
const CODINGS = { br: promisify(brotliCompress), gzip: promisify(gzip) } as const
type Coding = keyof typeof CODINGS

interface PageFile {
  readonly bytes: Uint8Array
  readonly type: string
  readonly tag: string
  /** Made when they are first asked for. */
  readonly coded: Partial<Record<Coding, Promise<Uint8Array>>>
}

/** The files of one page under `assets/`, and those of `assets/shared/`, which each page has under its own address. A file that was not there at the start is not served. */
export class PageFiles {
  /** Of the route that serves them, below that of the page. */
  static readonly ROUTE = {
    tags: ['system'],
    etag: true,
    summary: 'What that page loads',
    description: 'Scripts, styles and pictures of the page.',
  }
  readonly #files = new Map<string, PageFile>()

  /** @param folder under `assets/` */
  static async of(folder: string): Promise<PageFiles> {
    const files = new PageFiles()
    await Promise.all([files.#addFolder('shared'), files.#addFolder(folder), files.add('lit-html.js', LIT_HTML)])
    return files
  }

  /** The handler of the page itself. */
  readonly showPage = (_data: Data, context: HttpContext): Promise<void> => this.#send('index.html', context)

  /** The handler of `/:file` below it. */
  readonly showFile = ({ file }: { file: string }, context: HttpContext): Promise<void> => this.#send(file, context)

  async #addFolder(folder: string): Promise<void> {
    const names = await readdir(new URL(`${folder}/`, ASSETS))
    await Promise.all(names.map((name) => this.add(name, new URL(`${folder}/${name}`, ASSETS))))
  }

  async add(name: string, file: URL): Promise<void> {
    const type = TYPES[extname(name)]
    if (type === undefined) return
    const bytes = await readFile(file)
    // Weak: it is the same for each coding.
    const tag = `W/"${createHash('sha1').update(bytes).digest('base64url')}"`
    this.#files.set(name, { bytes, type, tag, coded: {} })
  }

  /** For a route with `etag`, which answers 304 to who has the file. @throws HTTP_NOT_FOUND */
  async #send(name: string, context: HttpContext): Promise<void> {
    const file = this.#files.get(name)
    if (file === undefined) throw new HeddleError('HTTP_NOT_FOUND', `The page has no file ${name}`)
    context.setHeader('cache-control', 'no-cache')
    context.setHeader('etag', file.tag)
    context.setHeader('vary', 'accept-encoding')
    const coding = file.bytes.length < COMPRESSED_MIN_BYTES ? null : codingFor(context.headers['accept-encoding'])
    if (coding === null) return void context.sendBinary(file.bytes, file.type)
    file.coded[coding] ??= CODINGS[coding](file.bytes)
    const bytes = await file.coded[coding]
    context.setHeader('content-encoding', coding)
    context.sendBinary(bytes, file.type)
  }
}

function codingFor(accepted = ''): Coding | null {
  for (const coding of Object.keys(CODINGS) as Coding[]) {
    const quality = new RegExp(`(?:^|,)[ \\t]*${coding}[ \\t]*(?:;[ \\t]*q=([\\d.]+)[ \\t]*)?(?:,|$)`, 'i').exec(
      accepted,
    )
    if (quality !== null && Number(quality[1] ?? 1) > 0) return coding
  }
  return null
}
