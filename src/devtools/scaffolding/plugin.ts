// `heddle new plugin`.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { CommandError } from '../../core/config/command-line.ts'
import { shown } from '../../core/errors/places.ts'
import { routeShape } from '../../runtime/endpoint/route.ts'
import { staticRoutes } from '../lint/route-collision.ts'
import { pascal } from '../words.ts'
import { checkKebab, inDomain, words } from './names.ts'
import { filled, type Scaffold } from './templates.ts'
import { domainChoice, domainFolder, importPath, testFile, type Workplace } from './workplace.ts'

/** What a verb makes: a route, and what its handler takes and answers. */
interface Kind {
  verbs: readonly string[]
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** The path names one item: `/:id`. */
  hasId: boolean
  /** Of the request, a line each. */
  schemas: readonly string[]
  /** Of the data that the handler takes out, and their types. */
  fields: string
  types: string
  /** The expression that is answered, and its value in the test. */
  data: string
  answer: string
  /** A request that is refused: what it sends instead, and the field that is at fault. */
  refused?: { query?: string; body?: string; field: string }
}

const BODY = 'body: z.object({ name: z.string().trim().min(1).max(100) })'
const PARAMS = 'params: z.object({ id: z.string().min(1).max(100) })'
const NO_QUERY = 'query: z.object({})'
const LIMIT = 'query: z.object({ limit: z.coerce.number().int().min(1).max(100).default(20) })'
const FIRST = "{ name: 'first' }"
const NAMELESS = { body: "{ name: '' }", field: 'name' }

const ITEM = {
  hasId: true,
  schemas: [PARAMS, NO_QUERY],
  fields: 'id',
  types: 'id: string',
  data: '{ id }',
  answer: "{ id: '1' }",
}
const KINDS: readonly Kind[] = [
  {
    verbs: ['list', 'search', 'find', 'count', 'export', 'report'],
    method: 'GET',
    hasId: false,
    schemas: [LIMIT],
    fields: 'limit',
    types: 'limit: number',
    data: '[]',
    answer: '[]',
    refused: { query: '?limit=0', field: 'limit' },
  },
  { verbs: ['show', 'get', 'read', 'view', 'check', 'download'], method: 'GET', ...ITEM },
  {
    verbs: ['update', 'change', 'edit', 'rename', 'set', 'move'],
    method: 'PATCH',
    hasId: true,
    schemas: [BODY, PARAMS, NO_QUERY],
    fields: 'id, name',
    types: 'id: string; name: string',
    data: '{ id, name }',
    answer: "{ id: '1', name: 'first' }",
    refused: NAMELESS,
  },
  { verbs: ['delete', 'remove', 'cancel', 'drop'], method: 'DELETE', ...ITEM },
]
/** For all other verbs: create, add, place, send, … */
const OTHER_KIND: Kind = {
  verbs: [],
  method: 'POST',
  hasId: false,
  schemas: [BODY, NO_QUERY],
  fields: 'name',
  types: 'name: string',
  data: '{ name }',
  answer: FIRST,
  refused: NAMELESS,
}

/** `npm run new -- plugin orders/create-order`: one route that its verb suggests, with schemas, and its test. @param isClass instead of a function */
export function scaffoldPlugin(
  workplace: Workplace,
  target: string,
  within: string | undefined,
  isClass = false,
): Scaffold {
  const [domain, name] = inDomain(target, 'A plugin', '<domain>/<verb-noun>, like orders/create-order')
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
  const { method, fields, types, data, answer, refused } = kind
  const path = freePath(workplace, kind, domain, name)
  const summary = words(name).replace(/^\w/, (letter) => letter.toUpperCase())
  const isPost = method === 'POST'
  const route = { method, path, url: path.replace(':id', '1'), purpose: summary.toLowerCase() }
  const text = filled(isClass ? 'plugin/class.ts' : 'plugin/function.ts', {
    ...route,
    domain,
    summary,
    Class,
    fields,
    types,
    data,
    schemas: kind.schemas.map((schema) => `  ${schema},\n`).join(''),
    register: method.toLowerCase(),
    // A method must not have this name.
    handler: verb === 'constructor' ? 'run' : verb,
    status: isPost ? '    context.setStatus(201)\n' : '',
  })
  const test = testFile(workplace, domain, name)
  const sent = (body: string): string => (refused?.body === undefined ? '' : `, { body: ${body} }`)
  const { query = '', body = '', field = '' } = refused ?? {}
  const testText = filled('plugin/test.ts', {
    ...route,
    answer,
    imported: isClass ? Class : Class.replace(/^./, (letter) => letter.toLowerCase()),
    plugin: importPath(test, plugin),
    domain: domainChoice(workplace, test, folder),
    request: sent(FIRST),
    code: isPost ? '201' : '200',
    refusal: refused === undefined ? '' : filled('plugin/refusal.ts', { ...route, query, field, request: sent(body) }),
  })
  return {
    files: [
      { path: plugin, text },
      { path: test, text: testText },
    ],
    next: [`npm test ${domain}/${name}    # its test`, 'npm run dev    # and in another terminal:', curl(method, path)],
  }
}

/** The usual path for the verb, or a path of its own when another plugin has registered that one. */
function freePath({ project }: Workplace, { method, hasId }: Kind, domain: string, name: string): string {
  const taken = new Set(staticRoutes(project).map((route) => routeShape(route.method, route.path)))
  const usual = `/${domain}${hasId ? '/:id' : ''}`
  if (!taken.has(routeShape(method, usual))) return usual
  return `/${domain}/${name}${hasId ? '/:id' : ''}`
}

function curl(method: Kind['method'], path: string): string {
  const url = `localhost:8000${path.replace(':id', '1')}`
  if (method === 'GET') return `curl ${url}`
  if (method === 'DELETE') return `curl -X DELETE ${url}`
  return `curl -X ${method} ${url} -H 'content-type: application/json' -d '{"name":"first"}'`
}
