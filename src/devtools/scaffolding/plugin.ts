import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { shown } from '../../core/errors/shown-path.ts'
import { routeShape } from '../../runtime/endpoint/route.ts'
import { CommandError } from '../command-error.ts'
import { staticRoutes } from '../lint/route-collision.ts'
import { checkKebab, pascal, words } from './names.ts'
import { domainChoice, domainFolder, importPath, testFile, type Workplace } from './workplace.ts'
import type { Scaffold } from './writing.ts'

interface Kind {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** The path names one item: `/:id`. */
  hasId: boolean
  verbs: readonly string[]
}

const KINDS: readonly Kind[] = [
  { method: 'GET', hasId: false, verbs: ['list', 'search', 'find', 'count', 'export', 'report'] },
  { method: 'GET', hasId: true, verbs: ['show', 'get', 'read', 'view', 'check', 'download'] },
  { method: 'PATCH', hasId: true, verbs: ['update', 'change', 'edit', 'rename', 'set', 'move'] },
  { method: 'DELETE', hasId: true, verbs: ['delete', 'remove', 'cancel', 'drop'] },
]
/** For all other verbs: create, add, place, send, … */
const OTHER_KIND: Kind = { method: 'POST', hasId: false, verbs: [] }

/** `npm run new -- plugin orders/create-order`: one route that its verb suggests, with schemas, and its test. @param isClass instead of a function */
export function scaffoldPlugin(
  workplace: Workplace,
  target: string,
  within: string | undefined,
  isClass = false,
): Scaffold {
  const [domain = '', name = '', ...more] = target.split('/')
  if (name === '' || more.length > 0) {
    throw new CommandError(`A plugin is named <domain>/<verb-noun>, like orders/create-order: not "${target}"`)
  }
  checkKebab('A domain', domain, 'orders')
  checkKebab('A plugin', name, 'create-order')
  if (!name.includes('-'))
    throw new CommandError(`A plugin is named by a verb and a noun, like create-order: not "${name}"`)
  const folder = domainFolder(workplace, domain, within)
  const Class = pascal(name)
  const twin = workplace.project.plugins.find((plugin) => plugin.name === `${domain}.${Class}`)
  const plugin = join(folder, 'plugins', `${name}.ts`)
  if (twin !== undefined && !existsSync(plugin)) {
    throw new CommandError(`There is a plugin ${twin.name} already: ${shown(twin.file)}`)
  }
  const verb = name.slice(0, name.indexOf('-'))
  const kind = KINDS.find(({ verbs }) => verbs.includes(verb)) ?? OTHER_KIND
  const names: Names = {
    ...kind,
    domain,
    isClass,
    Class,
    verb,
    path: freePath(workplace, kind, domain, name),
    summary: words(name).replace(/^\w/, (letter) => letter.toUpperCase()),
  }
  const test = testFile(workplace, domain, name)
  return {
    files: [
      { path: plugin, text: pluginText(names) },
      { path: test, text: testText(names, importPath(test, plugin), domainChoice(workplace, test, folder)) },
    ],
    next: [`npm test ${domain}/${name}    # its test`, 'npm run dev    # and in another terminal:', curl(names)],
  }
}

/** The usual path for the verb, or a path of its own when another plugin has registered that one. */
function freePath({ project }: Workplace, { method, hasId }: Kind, domain: string, name: string): string {
  const taken = new Set(staticRoutes(project).map((route) => routeShape(route.method, route.path)))
  const usual = `/${domain}${hasId ? '/:id' : ''}`
  if (!taken.has(routeShape(method, usual))) return usual
  return `/${domain}/${name}${hasId ? '/:id' : ''}`
}

interface Names extends Kind {
  domain: string
  isClass: boolean
  Class: string
  /** The handler's name. */
  verb: string
  path: string
  summary: string
}

function curl({ method, path }: Names): string {
  const url = `localhost:8000${path.replace(':id', '1')}`
  if (method === 'GET') return `curl ${url}`
  if (method === 'DELETE') return `curl -X DELETE ${url}`
  return `curl -X ${method} ${url} -H 'content-type: application/json' -d '{"name":"first"}'`
}

/** The name of the handler: the verb, unless a method must not have that name. */
const method = (verb: string): string => (verb === 'constructor' ? 'run' : verb)

/** Routes with a body make or change something. */
const hasBody = ({ method }: Kind): boolean => method === 'POST' || method === 'PATCH'

const ID = 'id: z.string().min(1).max(100)'

function pluginText(names: Names): string {
  const { path, summary, hasId, domain } = names
  const schemas = [
    ...(hasBody(names) ? ['body: z.object({ name: z.string().trim().min(1).max(100) })'] : []),
    ...(hasId ? [`params: z.object({ ${ID} })`] : []),
    hasBody(names) || hasId
      ? 'query: z.object({})'
      : 'query: z.object({ limit: z.coerce.number().int().min(1).max(100).default(20) })',
  ]
  const options = [...schemas, `tags: ['${domain}']`, `summary: '${summary}'`]
  return `import { z } from 'zod'
import { ${names.isClass ? 'type HttpContext, Plugin, type Tools' : 'plugin'} } from 'heddle'

const options = {
${options.map((option) => `  ${option},\n`).join('')}}

/** \`${names.method} ${path}\`: ${summary.toLowerCase()}. */
export default ${names.isClass ? classText(names) : functionText(names)}
`
}

/** What a handler takes out of its data. */
const fieldsOf = (names: Names): string[] =>
  hasBody(names) ? [...(names.hasId ? ['id'] : []), 'name'] : [names.hasId ? 'id' : 'limit']

function bodyText(names: Names, logger: string): string[] {
  const fields = fieldsOf(names).join(', ')
  return [
    `${logger}.info('${names.summary}', { ${fields}, request_id: context.requestId })`,
    ...(names.method === 'POST' ? ['context.setStatus(201)'] : []),
    `return { success: true, data: ${fields === 'limit' ? '[]' : `{ ${fields} }`} }`,
  ]
}

function functionText(names: Names): string {
  const { path } = names
  return `plugin(({ http, logger }) => {
  http.${names.method.toLowerCase()}('${path}', options, async ({ ${fieldsOf(names).join(', ')} }, context) => {
    ${bodyText(names, 'logger').join('\n    ')}
  })
})`
}

function classText(names: Names): string {
  const { Class, verb, path } = names
  const fields = fieldsOf(names)
  const types = fields.map((field) => `${field}: ${field === 'limit' ? 'number' : 'string'}`)
  return `class ${Class} extends Plugin {
  #http
  #log

  constructor({ http, logger }: Tools) {
    super()
    this.#http = http
    this.#log = logger
  }

  override onBoot() {
    this.#http.${names.method.toLowerCase()}('${path}', options, this.${method(verb)})
  }

  async ${method(verb)}({ ${fields.join(', ')} }: { ${types.join('; ')} }, context: HttpContext) {
    ${bodyText(names, 'this.#log').join('\n    ')}
  }
}`
}

function testText(names: Names, plugin: string, domain: string): string {
  const { path, hasId, summary } = names
  const url = path.replace(':id', '1')
  const isList = !hasBody(names) && !hasId
  const imported = names.isClass ? names.Class : names.Class.replace(/^./, (letter) => letter.toLowerCase())
  const call = (body: string, query = ''): string =>
    `app.request('${names.method}', '${url}${query}'${hasBody(names) ? `, { body: ${body} }` : ''})`
  const data = isList
    ? '[]'
    : hasBody(names) && hasId
      ? "{ id: '1', name: 'first' }"
      : hasBody(names)
        ? "{ name: 'first' }"
        : "{ id: '1' }"
  const refusal = hasBody(names)
    ? `
  const refused = await ${call("{ name: '' }")}
  assert.equal(refused.status, 422)
  assert.equal(refused.body.details[0].path, 'name')
`
    : isList
      ? `
  const refused = await ${call('', '?limit=0')}
  assert.equal(refused.status, 422)
  assert.equal(refused.body.details[0].path, 'limit')
`
      : ''
  return `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { plugin } from 'heddle/testing'
import ${imported} from '${plugin}'

test('${names.method} ${path}: ${summary.toLowerCase()}', async (t) => {
  const app = await plugin(t, ${imported}, { domain: ${domain} })
  const { status, body } = await ${call("{ name: 'first' }")}
  assert.equal(status, ${names.method === 'POST' ? 201 : 200})
  assert.deepEqual(body, { success: true, data: ${data} })
${refusal}})
`
}
