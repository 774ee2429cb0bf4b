import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ASSETS = fileURLToPath(new URL('../../domains/system/assets', import.meta.url))
const require = createRequire(import.meta.url)
const LIT_HTML = join(dirname(require.resolve('lit-html')), 'lit-html.js')

/** The scripts of a page in one folder, as they are served. They are JavaScript without types. */
export class PageModules {
  readonly #folder = mkdtempSync(join(tmpdir(), 'heddle-page-'))

  /** @param page a folder of the pages' files: `dashboard` or `docs` */
  constructor(page: string) {
    process.once('exit', () => rmSync(this.#folder, { recursive: true, force: true }))
    writeFileSync(join(this.#folder, 'package.json'), '{ "type": "module" }')
    writeFileSync(join(this.#folder, 'lit-html.js'), readFileSync(LIT_HTML))
    for (const folder of ['shared', page])
      for (const name of readdirSync(join(ASSETS, folder)).filter((each) => each.endsWith('.js')))
        writeFileSync(join(this.#folder, name), readFileSync(join(ASSETS, folder, name)))
  }

  // biome-ignore lint/suspicious/noExplicitAny: the scripts have no types
  load(name: string): any {
    return require(join(this.#folder, `${name}.js`))
  }
}
