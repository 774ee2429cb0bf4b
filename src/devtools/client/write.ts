// Writes the client of a service from its routes and events.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { JsonSchema, RouteInfo, ThrownInfo } from '../../contracts/registry.ts'
import { inOrder, OperationIds, pathName } from '../apidocs/components.ts'
import { isForm, needsBody, propertiesOf, WITH_BODY } from '../apidocs/parameters.ts'
import { capital, pascal } from '../words.ts'
import type { EventPayload } from './event-payloads.ts'
import { commentOf, isOpen, keyOf, quoted, TypeWriter } from './types.ts'

/** Names in the text beside those of `core.ts`. */
const OWN_NAMES = ['Client', 'Events', 'EventName']

/**
 * The client of a service as one TypeScript file without imports: a function for each route, the types of bodies, answers, failures and events. It
 * depends on the routes and events alone, so that it can be committed and compared.
 */
export function clientText(
  title: string,
  routes: readonly RouteInfo[],
  events: ReadonlyMap<string, EventPayload>,
): string {
  const types = new TypeWriter([...coreText().match(/\b[A-Z]\w*\b/g)!, ...OWN_NAMES])
  const methods = methodsOf(routes, types)
  const payloads = [...events]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([event, { schema }]) => {
      const type = isOpen(schema) ? '{ [key: string]: unknown }' : types.add(eventTypeName(event), schema)
      return `  ${keyOf(event)}: ${type}\n`
    })
  return [
    headOf(title),
    clientClass(methods),
    `${section('Types of the routes and events')}\n${types.declarations().join('\n')}`,
    `/** What is published under the name of an event. */\nexport interface Events ${payloads.length === 0 ? '{}' : `{\n${payloads.join('')}}`}\n\nexport type EventName = keyof Events\n`,
    `${section('What every client has')}\n${coreText()}`,
  ].join('\n')
}

function headOf(title: string): string {
  return `// The client of ${title.replace(/\s+/g, ' ')}, written by heddle from its routes and events: write it again instead of changing it.
// biome-ignore-all lint: written by a program
// biome-ignore-all format: written by a program
/* eslint-disable */
`
}

const section = (title: string): string => `// ${title}\n`

function clientClass(methods: readonly string[]): string {
  return `/**
 * A function for each route. What it answers is the JSON of the answer; it throws an \`ApiError\` for an answer of 400 and above, and \`Unreachable\` for none.
 * \`await client.getThing().result()\` throws neither: its \`ok\`, \`status\` and \`code\` tell which of the declared answers it is. Where a route has no schema for
 * its answers, their type is the caller's to say: \`client.getThing<Thing>()\`.
 */
export class Client {
  readonly #transport: Transport

  constructor(options: ClientOptions = {}) {
    this.#transport = new Transport(options)
  }

  /** Sends any request, as the functions of the routes do. @param path with its query: \`/files/a.png?size=2\` */
  request<Answer = unknown>(
    method: string,
    path: string,
    input?: { body?: RawBody | object | undefined; files?: FormFiles | undefined; contentType?: string | undefined },
    options?: CallOptions,
  ): Call<Answer> {
    return this.#transport.request<Answer>(method, path, input, options)
  }
${methods.map((method) => `\n${method}`).join('')}}
`
}

/** One for each route, in the order of paths, and named as in the OpenAPI document. */
function methodsOf(routes: readonly RouteInfo[], types: TypeWriter): string[] {
  const ids = new OperationIds()
  // Whoever calls a fetch handler has the client of its library.
  const typed = routes.filter(({ method }) => method !== 'ALL')
  return inOrder(typed).map((route) => methodOf(route, ids.of(route), types))
}

function methodOf(route: RouteInfo, id: string, types: TypeWriter): string {
  const { method, path, is_socket, is_stream, idempotency, has_raw_body, streamed_body, schemas, status } = route
  const name = capital(id)
  const parts = [...paramsOf(route, name, types), ...queryOf(route, name, types), ...bodyOf(route, name, types)]
  const isInputOptional = parts.every((part) => /^\w+\?/.test(part))
  const input = parts.length === 0 ? 'Record<string, never>' : `{ ${parts.join('; ')} }`
  const answer =
    status === 204
      ? 'undefined'
      : schemas.response === undefined
        ? 'unknown'
        : typeOf(`${name}Answer`, schemas.response, types)
  const failure = failureOf(route, name, types)
  const place = quoted(path)
  const comment = commentOf(aboutOf(route), '  ')
  const given = `input${isInputOptional ? '?' : ''}: ${input}`
  const written = (head: string, body: string) =>
    `${comment}  ${id}${head} {\n    return this.#transport.${body}\n  }\n`
  if (is_socket) {
    const head = `<Received = unknown, Sent = unknown>(${given}): Promise<Channel<Received, Sent>>`
    return written(head, `connect(${place}, input)`)
  }
  if (is_stream) {
    const head = `<Frame = unknown>(${given}, options?: CallOptions): AsyncGenerator<Frame, void, void>`
    return written(head, `stream(${place}, input, options)`)
  }
  const isOpen = answer === 'unknown'
  const options = idempotency === null ? 'CallOptions' : 'IdempotentOptions'
  const facts = [
    ...(idempotency === null ? [] : ['isKeyed: true']),
    ...(has_raw_body || streamed_body === 'stream' ? ['isRaw: true'] : []),
    ...(streamed_body === 'multipart' ? ['isForm: true'] : []),
  ]
  const last = facts.length === 0 ? '' : `, { ${facts.join(', ')} }`
  const head = `${isOpen ? '<Answer = unknown>' : ''}(${given}, options?: ${options}): Call<${isOpen ? 'Answer' : answer}, ${failure}>`
  return written(head, `call(${quoted(method)}, ${place}, input, options${last})`)
}

function aboutOf({ has_auth, security, idempotency, ...route }: RouteInfo): string {
  const { method, path, summary, plugin, is_stream, is_socket, status, throws } = route
  const what = is_socket
    ? `WebSocket \`${path}\``
    : is_stream
      ? `Server-sent events \`${path}\``
      : `\`${method} ${path}\``
  const wants: string[] = []
  if (has_auth || security?.is_required)
    wants.push(has_auth || security?.schemes.includes('bearer') ? 'a token' : 'a login')
  if (idempotency === 'required') wants.push('an `Idempotency-Key`, which it makes')
  const inOneLine = (text: string) => text.replace(/\s+/g, ' ')
  return [
    ...(summary === null ? [] : [`${inOneLine(summary)}${/[.!?]$/.test(summary) ? '' : '.'}`]),
    `${what} of ${plugin}${status === 200 ? '' : `; it answers ${status}`}${wants.length === 0 ? '' : `; it wants ${wants.join(' and ')}`}`,
    ...Object.entries(throws).map(
      ([status, { codes, description }]) =>
        `@throws ${[status, ...codes].join(' ')}${description === null ? '' : `: ${inOneLine(description)}`}`,
    ),
  ].join('\n')
}

/** `user.created` → `UserCreatedEvent` */
function eventTypeName(event: string): string {
  const name = pascal(event)
  return /^[A-Za-z]/.test(name) ? `${name}Event` : `Event${name}`
}

/** A type with a name, unless the schema says nothing. */
function typeOf(name: string, schema: JsonSchema, types: TypeWriter): string {
  return isOpen(schema) ? 'unknown' : types.add(name, schema)
}

function paramsOf({ path, schemas }: RouteInfo, name: string, types: TypeWriter): string[] {
  const { parameters } = pathName(path)
  if (parameters.length === 0) return []
  const known = schemas.params === undefined ? undefined : propertiesOf(schemas.params)
  const each = parameters.map(({ key }) => {
    const schema = known?.get(key)?.schema
    const type = schema === undefined ? 'unknown' : types.inline(schema, schemas.params, `${name}Params`)
    return `${keyOf(key)}: ${type === 'unknown' ? 'string | number' : type}`
  })
  return [`params: { ${each.join('; ')} }`]
}

function queryOf({ schemas }: RouteInfo, name: string, types: TypeWriter): string[] {
  const { query } = schemas
  const type = query === undefined ? 'unknown' : typeOf(`${name}Query`, query, types)
  // A route with schemas, but none of its query, reads none.
  if (query === undefined && (schemas.body ?? schemas.params) !== undefined) return []
  if (query === undefined || type === 'unknown') return ['query?: Query']
  const isRequired = [...(propertiesOf(query)?.values() ?? [])].some((property) => property.isRequired)
  return [isRequired ? `query: ${type}` : `query?: ${type}`]
}

function bodyOf(route: RouteInfo, name: string, types: TypeWriter): string[] {
  const { method, schemas, has_raw_body, streamed_body } = route
  if (route.is_stream || route.is_socket) return []
  const type = 'contentType?: string'
  if (streamed_body === 'multipart') return ['body?: Record<string, unknown> | FormData', 'files?: FormFiles']
  if (streamed_body === 'stream' || (has_raw_body && WITH_BODY.has(method))) return ['body?: RawBody', type]
  const { body } = schemas
  if (body === undefined) return WITH_BODY.has(method) ? ['body?: unknown', 'files?: FormFiles', type] : []
  const fields = typeOf(`${name}Body`, body, types)
  if (fields === 'unknown') return ['body: unknown', 'files?: FormFiles', type]
  const given = needsBody(body) ? `body: ${fields}` : `body?: ${fields}`
  // Values of a form are texts: where the schema takes those, files may come along.
  return isForm(body) ? [given, 'files?: FormFiles'] : [given]
}

function failureOf(route: RouteInfo, name: string, types: TypeWriter): string {
  const { schemas, throws, idempotency } = route
  const all = Object.entries(throws).map(([status, thrown]) => thrownOf(status, thrown, name, types))
  if ((schemas.body ?? schemas.query ?? schemas.params) !== undefined) all.push('ValidationFailure')
  if (idempotency !== null) all.push('KeyFailure')
  return [...all, 'RuntimeFailure'].join(' | ')
}

function thrownOf(status: string, { codes, details }: ThrownInfo, name: string, types: TypeWriter): string {
  const code = codes.length === 0 ? 'string | undefined' : [...new Set(codes)].map(quoted).join(' | ')
  const type = details === null ? 'unknown' : typeOf(`${name}Error${status}Details`, details, types)
  if (type !== 'unknown') return `ApiError<${status}, ${code}, ${type}>`
  return codes.length === 0 ? `ApiError<${status}>` : `ApiError<${status}, ${code}>`
}

let kept: string | undefined

/** `core.ts` between its first line and its last ones. It stays TypeScript in the package, too. */
function coreText(): string {
  kept ??= readFileSync(join(import.meta.dirname, 'core.ts'), 'utf8')
    .replace(/^.*\n\n/, '')
    .replace(/\n\/\/ .*\nexport \{ Transport \}\n$/, '')
    .replace(/^ *\/\/ biome-ignore .*\n/gm, '')
  return kept
}
