// Contracts of events: loaded, and held against payloads.

import type { StandardResult, StandardSchemaV1 } from '../../contracts/common.ts'
import { HeddleError } from '../errors/catalogue.ts'
import { messageOf } from '../errors/description.ts'
import { shown } from '../errors/places.ts'
import { type DomainPart, loadModule, partsOf } from '../modules/domains.ts'
import { faultsOf, isPlainObject, isStandardSchema, listed } from './standard-schema.ts'

/**
 * Checks a payload against the contract of its event. Returns undefined when it fits, or a promise of that when the schema is async.
 * @throws EVENT_CONTRACT with `details: [{ path, message }]`, also when the schema itself throws
 */
export function checkPayload(event: string, contract: EventContract, payload: unknown): Promise<undefined> | undefined {
  const { validate } = contract.schema['~standard']
  let outcome: ReturnType<typeof validate>
  try {
    outcome = validate(payload)
  } catch (thrown) {
    throw broken(event, contract, thrown)
  }
  if (!(outcome instanceof Promise)) return refuseMisfit(event, contract, outcome)
  return outcome.then(
    (result) => refuseMisfit(event, contract, result),
    (thrown) => {
      throw broken(event, contract, thrown)
    },
  )
}

/** A copy of the payload for an asynchronous check, since the publisher may change the payload meanwhile. */
export function snapshotOf<T>(payload: T): T {
  try {
    if (Object.prototype.toString.call(payload) === '[object Object]') return JSON.parse(JSON.stringify(payload)) as T
  } catch {
    // The bus refuses a payload that is not JSON, so the copy is not needed.
  }
  return payload
}

function refuseMisfit(event: string, contract: EventContract, { issues }: StandardResult<unknown>): undefined {
  if (issues === undefined) return
  const message = `The payload of ${event} does not fit its contract in ${shown(contract.file)}: ${listed(issues)}`
  throw new HeddleError('EVENT_CONTRACT', message, { details: faultsOf(issues) })
}

function broken(event: string, contract: EventContract, thrown: unknown): HeddleError {
  const message = `The contract of ${event} in ${shown(contract.file)} threw: ${messageOf(thrown)}`
  return new HeddleError('EVENT_CONTRACT', message, { cause: thrown, details: [] })
}

/** The schema that one domain declares for the payload of one event. */
export interface EventContract {
  domain: string
  /** Absolute path of the `events.ts` that declares it. */
  file: string
  schema: StandardSchemaV1
}

/** A fault in the contracts. The message names the file, or both files, and says how to fix it. */
interface ContractFault {
  file: string
  message: string
}

interface LoadedContracts {
  /** By the event's name. */
  contracts: Map<string, EventContract>
  faults: ContractFault[]
}

const EXPECTED = "export default { 'order.placed': z.object({ … }) } satisfies EventContracts"

/**
 * Loads `events.ts` of every domain into this thread: folder by folder, domains sorted by name.
 * A file with a fault gives no contract at all. When an event has two contracts, the first one counts.
 */
export async function loadEventContracts(domainsDirs: readonly string[]): Promise<LoadedContracts> {
  const contracts = new Map<string, EventContract>()
  const faults: ContractFault[] = []
  for (const { domain, path: file } of domainsDirs.flatMap((root) => contractFiles(root, faults))) {
    try {
      for (const [event, schema] of await readContracts(file)) {
        const first = contracts.get(event)
        if (first === undefined) contracts.set(event, { domain, file, schema })
        else if (first.file !== file) {
          const message = `The event '${event}' has two contracts, in ${shown(first.file)} and in ${shown(file)}: the first one counts. Declare it in the domain that publishes it`
          faults.push({ file, message })
        }
      }
    } catch (error) {
      faults.push({ file, message: `${shown(file)}: ${oneLine(messageOf(error))}. Its events are not checked` })
    }
  }
  return { contracts, faults }
}

function contractFiles(root: string, faults: ContractFault[]): DomainPart[] {
  try {
    return partsOf(root, 'events.ts')
  } catch (error) {
    faults.push({ file: root, message: `The event contracts in ${shown(root)} cannot be read: ${messageOf(error)}` })
    return []
  }
}

function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, ' ')
}

/** @throws Error that says what is wrong with the file */
async function readContracts(file: string): Promise<[event: string, schema: StandardSchemaV1][]> {
  const { default: declared } = await loadModule(file)
  if (declared === undefined) throw new Error(`it has no default export; write ${EXPECTED}`)
  if (!isPlainObject(declared) || isStandardSchema(declared)) {
    throw new Error(`its default export is not an object of schemas by event name; write ${EXPECTED}`)
  }
  return Object.entries(declared).map(([event, schema]) => {
    if (isStandardSchema(schema)) return [event, schema]
    throw new Error(`the value for '${event}' is not a Standard Schema; write for example z.object({ … })`)
  })
}

/** The default options of a subscriber. `SubscribeOptions` of the contract `event_bus` describes them. */
export const SUBSCRIBER_DEFAULTS = { retries: 0, backoffMs: 500, timeoutMs: 30_000, broadcast: false } as const

/** The priorities of events, the highest first. */
export const PRIORITIES = ['high', 'normal', 'low'] as const
