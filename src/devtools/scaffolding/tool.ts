import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { shown } from '../../core/errors/shown-path.ts'
import { findTools } from '../../runtime/kernel/discover.ts'
import { CommandError } from '../command-error.ts'
import { checkKebab, pascal, snake, words } from './names.ts'
import { importPath, testFile, type Workplace } from './workplace.ts'
import type { Scaffold } from './writing.ts'

const IS_PACKAGE = import.meta.url.endsWith('.js')
const CONTRACT = fileURLToPath(new URL('../../contracts/tool.ts', import.meta.url))

/** `npm run new -- tool s3`: a client of another server, with its contract, its README and its test. */
export function scaffoldTool(workplace: Workplace, folderName: string): Scaffold {
  checkKebab('A tool', folderName, 's3')
  const name = snake(folderName)
  // A package is not changed: the application has a folder of its own.
  const folder = join(IS_PACKAGE ? join(workplace.root, 'tools') : workplace.toolsDir, folderName)
  refuseTaken(workplace, folder, name)
  const file = join(folder, 'index.ts')
  const test = testFile(workplace, 'tools', folderName)
  const names: Names = {
    name,
    title: words(folderName),
    Contract: pascal(folderName),
    variable: `${name.toUpperCase()}_URL`,
  }
  return {
    files: [
      { path: file, text: toolText(names, IS_PACKAGE ? 'heddle' : importPath(file, CONTRACT)) },
      { path: join(folder, 'README.md'), text: pageText(names) },
      { path: test, text: testText(names) },
    ],
    next: [
      `npm test tools/${folderName}    # its test`,
      'npm run tools           # lists it',
      `constructor({ ${name} }: Tools)    # how a plugin asks for it`,
      `${names.variable}=http://127.0.0.1:9000 npm start`,
    ],
  }
}

/** A tool may have several implementations, of which one is active. This command makes new tools alone, so the name must be free. */
function refuseTaken({ toolsDir }: Workplace, folder: string, name: string): void {
  const extras = join(dirname(toolsDir), 'extras')
  const all = [...findTools(toolsDir), ...(existsSync(extras) ? findTools(extras) : [])]
  const declares = new RegExp(`\\bname(?::\\s*\\w+)? = (['"])${name}\\1`)
  const twin = all.find(
    ({ path, file }) => basename(path) === basename(folder) || declares.test(readFileSync(file, 'utf8')),
  )
  if (twin === undefined) return
  throw new CommandError(`There is a tool ${name} already: ${shown(twin.path)}`)
}

interface Names {
  /** `mail_sender` */
  name: string
  /** `mail sender` */
  title: string
  /** `MailSender` */
  Contract: string
  /** `MAIL_SENDER_URL` */
  variable: string
}

const toolText = ({ name, Contract, variable }: Names, contract: string): string => `\
import type { Tool, ToolRuntime } from '${contract}'

/** The tool that plugins get as \`${name}\`. */
export interface ${Contract} {
  /** @throws when the server has nothing for the key, or does not answer */
  read(key: string): Promise<string>
}

declare module 'heddle' {
  interface Tools {
    ${name}: ${Contract}
  }
}

const TIMEOUT_MS = 5000

/** One instance per thread. To open and close connections, implement \`boot\` and \`stop\`. */
export default class ${Contract}Tool implements Tool, ${Contract} {
  readonly name = '${name}'
  readonly #url: string | undefined

  constructor(runtime: ToolRuntime) {
    this.#url = runtime.env('${variable}')
  }

  async read(key: string): Promise<string> {
    const response = await this.#fetch(\`/\${encodeURIComponent(key)}\`)
    if (!response.ok) throw new Error(\`${name} answered \${response.status} for \${key}\`)
    return response.text()
  }

  /** Called every HEALTH_CHECK_INTERVAL seconds. Healthy while no server is configured, since nothing can use it then. */
  async healthCheck(): Promise<boolean> {
    return this.#url === undefined || (await this.#fetch('/')).status < 500
  }

  async #fetch(path: string): Promise<Response> {
    if (this.#url === undefined) throw new Error('${variable} is not set')
    return fetch(this.#url + path, { signal: AbortSignal.timeout(TIMEOUT_MS) })
  }
}
`

const pageText = ({ name, title, variable }: Names): string => `\
# ${name}

A client of the ${title} server at \`${variable}\`. Plugins get it by \`${name}\`. The address is,
for example, \`http://127.0.0.1:9000\`.

- \`read(key)\` → text. Rejects when \`${variable}\` is not set, when the server has nothing for the key, and when the server does not answer within 5 s.

Each call is a metric \`${name}.read\` in \`/system/metrics\`; \`/system/status\` shows the server's health.
`

const testText = ({ name, variable }: Names): string => `\
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { Plugin } from 'heddle'
import { plugin } from 'heddle/testing'

class Probe extends Plugin {}

test('${name} reads the value of a key', async (t) => {
  const server = createServer((request, response) => {
    if (request.url === '/here') response.end('found')
    else response.writeHead(404).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo

  const { tools } = await plugin(t, Probe, { env: { ${variable}: \`http://127.0.0.1:\${port}\` } })
  assert.equal(await tools.${name}.read('here'), 'found')
  await assert.rejects(tools.${name}.read('nowhere'), /answered 404 for nowhere/)
})
`
