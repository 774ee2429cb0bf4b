import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { StandardSchemaV1 } from '../../contracts/standard-schema.ts'
import { isPlainObject } from '../collections/plain-object.ts'
import { messageOf } from '../errors/description.ts'
import { shown } from '../errors/shown-path.ts'
import { loadModule } from '../modules/load-module.ts'
import { isStandardSchema } from './standard-schema.ts'

/** The schema that one domain declares for the payload of one event. */
export interface EventContract {
  domain: string
  /** Absolute path of the `events.ts` that declares it. */
  file: string
  schema: StandardSchemaV1
}

/** A fault in the contracts. The message names the file, or both files, and says how to fix it. */
export interface ContractFault {
  file: string
  message: string
}

export interface LoadedContracts {
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
  for (const { domain, file } of domainsDirs.flatMap((root) => contractFiles(root, faults))) {
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

function contractFiles(root: string, faults: ContractFault[]): { domain: string; file: string }[] {
  try {
    return readdirSync(root, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
      .map(({ name }) => ({ domain: name, file: join(root, name, 'events.ts') }))
      .filter(({ file }) => existsSync(file))
      .sort((a, b) => (a.domain < b.domain ? -1 : 1))
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
