import type { JsonSchema, RouteInfo } from '../../contracts/route-info.ts'
import { coreNames, coreText } from './core-text.ts'
import { type Operation, operationsOf } from './operations.ts'
import { commentOf, keyOf, quoted } from './source-text.ts'
import { isOpen, TypeWriter } from './type-writer.ts'

/** A payload as its event's contract has it. */
export interface EventSchema {
  domain: string
  schema: JsonSchema
}

/** Names in the text beside those of `core/`. */
const OWN_NAMES = ['Client', 'Events', 'EventName']

/**
 * The client of a service as one TypeScript file without imports: a function for each route, the types of bodies, answers, failures and events. It
 * depends on the routes and events alone, so that it can be committed and compared.
 */
export function clientText(
  title: string,
  routes: readonly RouteInfo[],
  events: ReadonlyMap<string, EventSchema>,
): string {
  const types = new TypeWriter([...coreNames(), ...OWN_NAMES])
  const operations = operationsOf(routes, types)
  const payloads = [...events]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([event, { schema }]) => {
      const type = isOpen(schema) ? '{ [key: string]: unknown }' : types.add(eventTypeName(event), schema)
      return `  ${keyOf(event)}: ${type}\n`
    })
  return [
    headOf(title),
    clientClass(operations),
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

function clientClass(operations: readonly Operation[]): string {
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
${operations.map((operation) => `\n${methodOf(operation)}`).join('')}}
`
}

function methodOf({ id, route, input, isInputOptional, answer, failure }: Operation): string {
  const { method, path, is_socket, is_stream, idempotency, has_raw_body, streamed_body } = route
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

function aboutOf({
  method,
  path,
  summary,
  plugin,
  has_auth,
  security,
  is_stream,
  is_socket,
  idempotency,
  throws,
}: RouteInfo): string {
  const kind = is_socket ? 'WebSocket' : is_stream ? 'Server-sent events' : method
  const wants = [
    ...(has_auth || security?.is_required
      ? [has_auth || security?.schemes.includes('bearer') ? 'a token' : 'a login']
      : []),
    ...(idempotency === 'required' ? ['an `Idempotency-Key`, which it makes'] : []),
  ]
  return [
    ...(summary === null ? [] : [`${summary.replace(/\s+/g, ' ')}${/[.!?]$/.test(summary) ? '' : '.'}`]),
    `${is_socket || is_stream ? `${kind} \`${path}\`` : `\`${kind} ${path}\``} of ${plugin}${wants.length === 0 ? '' : `; it wants ${wants.join(' and ')}`}`,
    ...Object.entries(throws).map(
      ([status, { codes, description }]) =>
        `@throws ${[status, ...codes].join(' ')}${description === null ? '' : `: ${description.replace(/\s+/g, ' ')}`}`,
    ),
  ].join('\n')
}

/** `user.created` → `UserCreatedEvent` */
function eventTypeName(event: string): string {
  const words = event.split(/[^A-Za-z0-9]+/).filter(Boolean)
  const name = words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join('')
  return /^[A-Za-z]/.test(name) ? `${name}Event` : `Event${name}`
}
