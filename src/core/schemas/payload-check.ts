import type { StandardResult } from '../../contracts/standard-schema.ts'
import { HeddleError } from '../errors/catalogue.ts'
import { messageOf } from '../errors/description.ts'
import { shown } from '../errors/shown-path.ts'
import type { EventContract } from './event-contracts.ts'
import { faultsOf, listed } from './standard-schema.ts'

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
