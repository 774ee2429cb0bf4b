import path from 'node:path'
import {
  type DynamicEmit,
  dynamicEmits,
  type EventCall,
  eventCalls,
  isBlank,
  isBuiltIn,
  mayEmit,
} from './event-calls.ts'
import { displayPath, errorAt, type Finding, warningAt } from './finding.ts'
import { misfits, type PayloadSchema } from './payload-schema.ts'
import type { Module, Project } from './project.ts'

export interface Contract {
  module: Module
  line: number
  schema: PayloadSchema
}

const RULE = 'event-contract'

/** Every published event has one contract, literal payloads fit it, and every event with a subscriber is published somewhere. */
export function eventContract(project: Project): Finding[] {
  const findings: Finding[] = []
  const contracts = new Map<string, Contract>()
  const allReadable = collectContracts(project, contracts, findings)
  const calls = eventCalls(project)
  const published = new Set(calls.filter(({ kind }) => kind === 'emit').map(({ event }) => event))
  const open = dynamicEmits(project)
  for (const call of calls) {
    const { event, module, line } = call
    if (call.kind === 'emit') {
      const contract = contracts.get(event)
      if (contract) findings.push(...payloadFindings(call, contract))
      else if (allReadable && !(isBuiltIn(event) && module.domain === 'system')) {
        const wanted = `declare it in domains/${module.domain}/events.ts`
        findings.push(errorAt(RULE, module.file, line, `the event '${event}' has no contract: ${wanted}`))
      }
    } else if (!published.has(event) && !isBuiltIn(event)) {
      const message = objection(event, open)
      if (message !== undefined) findings.push(warningAt(RULE, module.file, line, message))
    }
  }
  return findings
}

/** The fault of a subscription to an event that no `publish` in the sources names. */
function objection(event: string, open: readonly DynamicEmit[]): string | undefined {
  const plain = `nobody publishes the event '${event}' subscribed to here`
  const possible = open.filter((emit) => mayEmit(emit, event))
  if (possible.some((emit) => !isBlank(emit))) return undefined
  const [blank] = possible
  if (!blank) return plain
  return `${plain}, unless ${displayPath(blank.module.file)}:${blank.line} does, where the name is only known at run time`
}

/** Event → its contract, which is the first one when there are several. */
export function contractsOf(project: Project): Map<string, Contract> {
  const contracts = new Map<string, Contract>()
  collectContracts(project, contracts, [])
  return contracts
}

/** @returns false when a domain has contracts whose names the source does not show */
function collectContracts(project: Project, contracts: Map<string, Contract>, findings: Finding[]): boolean {
  let allReadable = true
  for (const module of project.modules) {
    if (!module.contracts || !isDomainsOwn(module, project)) continue
    const { events, unreadableLine } = module.contracts
    if (unreadableLine !== undefined) {
      allReadable = false
      const message = 'the contracts are not one object literal with literal names: missing contracts go unnoticed'
      findings.push(warningAt(RULE, module.file, unreadableLine, message))
    }
    for (const { event, line, schema } of events) {
      const first = contracts.get(event)
      if (!first) contracts.set(event, { module, line, schema })
      else {
        const place = `${displayPath(first.module.file)}:${first.line}`
        findings.push(errorAt(RULE, module.file, line, `the event '${event}' has a contract already, in ${place}`))
      }
    }
  }
  return allReadable
}

function isDomainsOwn(module: Module, project: Project): boolean {
  const domain = project.domains.find(({ name }) => name === module.domain)
  return domain?.folders.includes(path.dirname(module.file)) ?? false
}

function payloadFindings({ event, module, payload }: EventCall, contract: Contract): Finding[] {
  if (payload?.type !== 'object') return []
  return misfits(payload, contract.schema).map(({ line, message }) =>
    errorAt(RULE, module.file, line, `the payload of '${event}' ${message}`),
  )
}
