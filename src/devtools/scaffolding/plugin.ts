import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { shown } from '../../core/errors/shown-path.ts'
import { routeShape } from '../../runtime/endpoint/route-shape.ts'
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

/** `npm run new -- plugin orders/create-order`: one route that its verb suggests, with schemas, and its test. */
export function scaffoldPlugin(workplace: Workplace, target: string, within: string | undefined): Scaffold {
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
    next: [`npm test ${domain}/${name}    # its test`, 'npm start    # and in another terminal:', curl(names)],
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

function pluginText(names: Names): string {
  const { domain, Class, verb, path, summary, hasId } = names
  const hasBody = names.method === 'POST' || names.method === 'PATCH'
  const isList = names.method === 'GET' && !hasId
  const schema = hasBody
    ? 'const input = z.object({ name: z.string().trim().min(1).max(100) })'
    : isList
      ? 'const filter = z.object({ limit: z.coerce.number().int().min(1).max(100).default(20) })'
      : 'const place = z.object({ id: z.string().min(1).max(100) })'
  const options = hasBody
    ? `body: input, query: z.object({}),${hasId ? ' params: z.object({ id: z.string().min(1).max(100) }),' : ''}`
    : isList
      ? 'query: filter,'
      : 'params: place, query: z.object({}),'
  const fields = hasBody ? (hasId ? 'id, name' : 'name') : isList ? 'limit' : 'id'
  const type = hasBody
    ? `z.infer<typeof input>${hasId ? ' & { id: string }' : ''}`
    : isList
      ? 'z.infer<typeof filter>'
      : 'z.infer<typeof place>'
  const creates = names.method === 'POST'
  const data = isList ? '[]' : hasBody && hasId ? '{ id, name }' : hasBody ? '{ name }' : '{ id }'
  return `import { z } from 'zod'
import { type HttpContext, Plugin, type Tools } from 'heddle'

${schema}

/** \`${names.method} ${path}\`: ${summary.toLowerCase()}. */
export default class ${Class} extends Plugin {
  #http
  #log

  constructor({ http, logger }: Tools) {
    super()
    this.#http = http
    this.#log = logger
  }

  override onBoot() {
    this.#http.addEndpoint('${path}', '${names.method}', this.${method(verb)}, {
      ${options}
      tags: ['${domain}'],
      summary: '${summary}',
    })
  }

  async ${method(verb)}({ ${fields} }: ${type}, context: HttpContext) {
    this.#log.info('${summary}', { ${fields}, request_id: context.requestId })
    ${creates ? 'context.setStatus(201)\n    ' : ''}return { success: true, data: ${data} }
  }
}
`
}

function testText(names: Names, plugin: string, domain: string): string {
  const { Class, path, hasId, summary } = names
  const url = path.replace(':id', '1')
  const hasBody = names.method === 'POST' || names.method === 'PATCH'
  const isList = names.method === 'GET' && !hasId
  const call = (body: string, query = ''): string =>
    `app.request('${names.method}', '${url}${query}'${hasBody ? `, { body: ${body} }` : ''})`
  const data = isList
    ? '[]'
    : hasBody && hasId
      ? "{ id: '1', name: 'first' }"
      : hasBody
        ? "{ name: 'first' }"
        : "{ id: '1' }"
  const refusal = hasBody
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
import ${Class} from '${plugin}'

test('${names.method} ${path}: ${summary.toLowerCase()}', async (t) => {
  const app = await plugin(t, ${Class}, { domain: ${domain} })
  const { status, body } = await ${call("{ name: 'first' }")}
  assert.equal(status, ${names.method === 'POST' ? 201 : 200})
  assert.deepEqual(body, { success: true, data: ${data} })
${refusal}})
`
}
