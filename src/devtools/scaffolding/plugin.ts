// `heddle new plugin`.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { CommandError } from '../../core/config/command-line.ts'
import { shown } from '../../core/errors/places.ts'
import { routeShapes } from '../../runtime/endpoint/route.ts'
import { staticRoutes } from '../lint/route-collision.ts'
import { pascal } from '../words.ts'
import { checkKebab, inDomain, words } from './names.ts'
import { filled, type Scaffold } from './templates.ts'
import { domainChoice, domainFolder, importPath, testFile, type Workplace } from './workplace.ts'

/** What a verb makes: a route of a method, and what comes with its request. */
interface Kind {
  verbs: readonly string[]
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  takes: readonly (keyof typeof INPUTS)[]
}

/** What may come with a request: its schema, the field that the handler takes out, its value in the test, and a request that is refused for it. */
const INPUTS = {
  body: {
    schema: 'body: z.object({ name: z.string().trim().min(1).max(100) })',
    field: 'name',
    type: 'string',
    answer: "name: 'first'",
    refused: { query: '', body: "{ name: '' }" },
  },
  id: {
    schema: 'params: z.object({ id: z.string().min(1).max(100) })',
    field: 'id',
    type: 'string',
    answer: "id: '1'",
    refused: undefined,
  },
  limit: {
    schema: 'query: z.object({ limit: z.coerce.number().int().min(1).max(100).default(20) })',
    field: 'limit',
    type: 'number',
    answer: '',
    refused: { query: '?limit=0', body: '' },
  },
}
const FIRST = "{ name: 'first' }"

const KINDS: readonly Kind[] = [
  { verbs: ['list', 'search', 'find', 'count', 'export', 'report'], method: 'GET', takes: ['limit'] },
  { verbs: ['show', 'get', 'read', 'view', 'check', 'download'], method: 'GET', takes: ['id'] },
  { verbs: ['update', 'change', 'edit', 'rename', 'set', 'move'], method: 'PATCH', takes: ['body', 'id'] },
  { verbs: ['delete', 'remove', 'cancel', 'drop'], method: 'DELETE', takes: ['id'] },
]
/** For all other verbs: create, add, place, send, … */
const OTHER_KIND: Kind = { verbs: [], method: 'POST', takes: ['body'] }

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
  const { method, takes } = kind
  const isList = takes.includes('limit')
  const inputs = takes.map((name) => INPUTS[name])
  const refused = inputs.find((input) => input.refused !== undefined)
  // An id comes first.
  const taken = inputs.toReversed()
  const fields = taken.map(({ field }) => field).join(', ')
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
    types: taken.map(({ field, type }) => `${field}: ${type}`).join('; '),
    data: isList ? '[]' : `{ ${fields} }`,
    schemas: inputs.map(({ schema }) => `  ${schema},\n`).join(''),
    register: method.toLowerCase(),
    // A method must not have this name.
    handler: verb === 'constructor' ? 'run' : verb,
    status: isPost ? '  status: 201,\n' : '',
  })
  const test = testFile(workplace, domain, name)
  const sent = (body: string): string => (takes.includes('body') ? `, { body: ${body} }` : '')
  const refusal = refused?.refused && {
    ...route,
    query: refused.refused.query,
    field: refused.field,
    request: sent(refused.refused.body),
  }
  const testText = filled('plugin/test.ts', {
    ...route,
    answer: isList ? '[]' : `{ ${taken.map(({ answer }) => answer).join(', ')} }`,
    imported: isClass ? Class : Class.replace(/^./, (letter) => letter.toLowerCase()),
    plugin: importPath(test, plugin),
    domain: domainChoice(workplace, test, folder),
    request: sent(FIRST),
    code: isPost ? '201' : '200',
    refusal: refusal === undefined ? '' : filled('plugin/refusal.ts', refusal),
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
function freePath({ project }: Workplace, { method, takes }: Kind, domain: string, name: string): string {
  const taken = new Set(staticRoutes(project).flatMap((route) => routeShapes(route.method, route.path)))
  const id = takes.includes('id') ? '/:id' : ''
  const usual = `/${domain}${id}`
  if (!taken.has(routeShapes(method, usual)[0]!)) return usual
  return `/${domain}/${name}${id}`
}

function curl(method: Kind['method'], path: string): string {
  const url = `localhost:8000${path.replace(':id', '1')}`
  if (method === 'GET') return `curl ${url}`
  if (method === 'DELETE') return `curl -X DELETE ${url}`
  return `curl -X ${method} ${url} -H 'content-type: application/json' -d '{"name":"first"}'`
}
