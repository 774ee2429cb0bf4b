// The payloads of events, as their contracts declare them.
import type { JsonSchema } from '../../contracts/registry.ts'
import { loadEventContracts } from '../../core/schemas/event-contracts.ts'
import { jsonSchemaOf } from '../../core/schemas/json-schema.ts'

export interface EventPayload {
  /** The domain that declares it. */
  domain: string
  schema: JsonSchema
}

/** Returns the payloads by event, from `events.ts` of every domain. A file with a fault gives none; the fault itself is reported elsewhere. */
export async function eventPayloads(domainsDirs: readonly string[]): Promise<Map<string, EventPayload>> {
  const { contracts } = await loadEventContracts(domainsDirs)
  const payloads = new Map<string, EventPayload>()
  for (const [event, { domain, schema }] of contracts)
    payloads.set(event, { domain, schema: jsonSchemaOf(schema, 'event') })
  return payloads
}
