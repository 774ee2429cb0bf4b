// The AsyncAPI document of the events, and their payloads.
import type { JsonSchema } from '../../contracts/registry.ts'
import { loadEventContracts } from '../../core/schemas/event-contracts.ts'
import { jsonSchemaOf, placed } from '../../core/schemas/json-schema.ts'
import { UniqueNames } from '../words.ts'
import type { ApiInfo } from './openapi.ts'
import { exampleOf } from './schema-example.ts'

/** The payload of an event, as its contract declares it. */
export interface EventPayload {
  /** The domain that declares it. */
  domain: string
  schema: JsonSchema
}

/** Payloads by event, from `events.ts` of every domain. A file with a fault gives none; the fault itself is reported elsewhere. */
export async function eventPayloads(domainsDirs: readonly string[]): Promise<Map<string, EventPayload>> {
  const { contracts } = await loadEventContracts(domainsDirs)
  const payloads = new Map<string, EventPayload>()
  for (const [event, { domain, schema }] of contracts)
    payloads.set(event, { domain, schema: jsonSchemaOf(schema, 'event') })
  return payloads
}

/** Names of the plugins that publish an event and of the plugins that subscribe to it. */
export interface EventParties {
  emitters: readonly string[]
  subscribers: readonly string[]
}

interface Ref {
  $ref: string
}

interface Message {
  name: string
  contentType: string
  tags?: { name: string }[]
  headers: Ref
  payload: JsonSchema
  examples?: { payload: unknown }[]
}

/** Source: AsyncAPI specification 3.0.0. */
export interface AsyncApiDocument {
  asyncapi: '3.0.0'
  info: ApiInfo & { tags: { name: string; description: string }[] }
  defaultContentType: string
  servers: Record<string, { host: string; protocol: string; description: string }>
  channels: Record<string, { address: string; messages: Record<string, Ref> }>
  operations: Record<
    string,
    {
      action: 'send' | 'receive'
      channel: Ref
      summary: string
      description: string
      messages: Ref[]
      'x-plugin': string
    }
  >
  components: { messages: Record<string, Message>; schemas: Record<string, JsonSchema> }
}

const DESCRIPTION =
  'Each event goes to every subscriber, at least once. One that fails is tried again as its subscriber asks; after the last attempt it is a dead letter, ' +
  'and `event.delivery.failed` is published.'

/** The document wants one. */
const SERVERS = {
  service: {
    host: 'localhost',
    protocol: 'heddle',
    description:
      'The service itself: its plugins publish and take these events. Nobody connects for that from outside; `/system/events/stream` shows them.',
  },
}

const JSON_TYPE = 'application/json'

/** The second argument of a subscriber's handler: facts of the event beside its payload. */
const EVENT_META: JsonSchema = {
  type: 'object',
  description: 'What the runtime sends along with every event.',
  required: ['id', 'parent_id', 'event', 'emitter', 'timestamp', 'request_id', 'attempt'],
  properties: {
    id: { type: 'string', pattern: '^evt_[0-9a-f]{32}$' },
    parent_id: { type: ['string', 'null'], description: 'The event that caused it.' },
    event: { type: 'string' },
    emitter: { type: 'string', description: 'The plugin that published it.' },
    timestamp: { type: 'string', format: 'date-time' },
    request_id: { type: ['string', 'null'], description: 'The HTTP request at the root of it all.' },
    attempt: { type: 'integer', minimum: 1, description: '1 on the first delivery.' },
  },
}

/** Describes the events that plugins exchange. Events whose name begins with `_` are internal and left out. */
export function asyncApiDocument(
  parties: Readonly<Record<string, EventParties>>,
  payloads: ReadonlyMap<string, EventPayload>,
  info: ApiInfo,
): AsyncApiDocument {
  const names = new UniqueNames()
  /** Keys of a document hold letters, digits, `.`, `_` and `-`. */
  const keyOf = (text: string): string => names.of(text.replace(/[^A-Za-z0-9._-]/g, '_'), '_')
  const channels: AsyncApiDocument['channels'] = {}
  const operations: AsyncApiDocument['operations'] = {}
  const messages: Record<string, Message> = {}
  const events = [...new Set([...Object.keys(parties), ...payloads.keys()])]
  for (const event of events.filter((name) => !name.startsWith('_')).sort()) {
    const key = keyOf(event)
    const channel = { $ref: `#/channels/${key}` }
    messages[key] = messageOf(event, key, payloads.get(event))
    channels[key] = { address: event, messages: { [key]: { $ref: `#/components/messages/${key}` } } }
    const { emitters = [], subscribers = [] } = parties[event] ?? {}
    const sides = [
      { action: 'send', plugins: emitters, does: 'publishes', others: `It goes to ${namesOf(subscribers)}.` },
      { action: 'receive', plugins: subscribers, does: 'subscribes to', others: `It comes from ${namesOf(emitters)}.` },
    ] as const
    for (const { action, plugins, does, others: description } of sides) {
      for (const plugin of plugins) {
        const summary = `${plugin} ${does} ${event}`
        const sent = [{ $ref: `${channel.$ref}/messages/${key}` }]
        const operation = { action, channel, summary, description, messages: sent, 'x-plugin': plugin }
        operations[keyOf(`${action}.${event}.${plugin}`)] = operation
      }
    }
  }
  const schemas = { EventMeta: EVENT_META }
  const domains = [...new Set(Object.values(operations).map((each) => each['x-plugin'].split('.', 1)[0]!))].sort()
  return {
    asyncapi: '3.0.0',
    info: {
      description: DESCRIPTION,
      ...info,
      tags: domains.map((name) => ({ name, description: `Published or taken by the domain \`${name}\`.` })),
    },
    defaultContentType: JSON_TYPE,
    servers: SERVERS,
    channels,
    operations,
    components: { messages, schemas },
  }
}

const namesOf = (plugins: readonly string[]): string => plugins.map((name) => `\`${name}\``).join(', ') || 'nobody'

function messageOf(event: string, key: string, contract: EventPayload | undefined): Message {
  const message = { name: event, contentType: JSON_TYPE, headers: { $ref: '#/components/schemas/EventMeta' } }
  if (contract === undefined) {
    const payload = { type: 'object', description: 'No contract says what is in it.', additionalProperties: true }
    return { ...message, payload }
  }
  const example = exampleOf(contract.schema, 'text')
  return {
    ...message,
    tags: [{ name: contract.domain }],
    payload: placed(contract.schema, `#/components/messages/${key}/payload`),
    ...(example === undefined ? {} : { examples: [{ payload: example.value }] }),
  }
}
